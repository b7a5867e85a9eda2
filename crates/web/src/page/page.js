// The page of skipstep-web. Each view is a function that fills the main element and returns a
// function that ends it. All texts from the filter become text nodes, never markup.
"use strict";

const VIEWS = [
  ["overview", "Overview", overview],
  ["log", "Log", view_log],
  ["drops", "Drops", view_drops],
  ["states", "States", view_states],
  ["rules", "Rules", view_rules],
  ["tables", "Tables", view_tables],
  ["explain", "Explain", view_explain],
  ["load", "Load", view_load],
];
// Records that a live view keeps, and that it shows.
const KEPT = 5000, SHOWN = 200;

let me = null;           // the session
let end_view = () => {}; // ends the view that is shown
let info = null;         // the last answer of pfctl -s info
let trial = null;        // the load on trial, with `ends` in milliseconds

// ---- Elements ----

const $ = (id) => document.getElementById(id);

/// Makes an element. A property that begins with "on" is a listener; `class` and ARIA are attributes.
function el(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list") element[name] = value;
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/// Shows a message for a while; an error stays longer.
function say(text, is_wrong) {
  const close = el("button", { className: "plain", "aria-label": "Close this message", onclick: () => message.remove() }, "×");
  const message = el("div", { className: is_wrong ? "message wrong" : "message" }, el("span", {}, text || "Done."), close);
  $("messages").append(message);
  setTimeout(() => message.remove(), is_wrong ? 20000 : 6000);
}

const complain = (error) => say(error.message, true);

// ---- Requests ----

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("skipstep-web does not answer.");
  }
  if (response.status === 401) {
    log_in();
    throw new Error("Log in first.");
  }
  if (!response.ok) {
    const answer = await response.json().catch(() => ({}));
    throw new Error(answer.error || `Error ${response.status}`);
  }
  return response;
}

async function get(verb, fields) {
  const query = new URLSearchParams(fields || {});
  const response = await request(`/api/${verb}?${query}`);
  const is_json = (response.headers.get("content-type") || "").includes("json");
  return is_json ? response.json() : response.text();
}

async function change(verb, fields) {
  const response = await request(`/api/${verb}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-skipstep-proof": me ? me.proof : "" },
    body: JSON.stringify(fields || {}),
  });
  return response.status === 204 ? {} : response.json();
}

/// Calls `work` now and every `seconds`, one call at a time. Returns a function that stops.
function repeat(seconds, work) {
  let timer = null, stopped = false;
  const turn = async () => {
    if (document.visibilityState === "visible") await work().catch(quietly);
    if (!stopped) timer = setTimeout(turn, seconds * 1000);
  };
  turn();
  return () => { stopped = true; clearTimeout(timer); };
}

let last_complaint = "";
/// Shows the error of a repeated request once.
function quietly(error) {
  if (error.message !== last_complaint) complain(error);
  last_complaint = error.message;
}

// ---- Words and numbers ----

const number = (value) => value.toLocaleString("en");

function scaled(value, unit, base) {
  const prefixes = ["", "k", "M", "G", "T"];
  let index = 0;
  while (value >= base && index < prefixes.length - 1) { value /= base; index += 1; }
  const digits = index === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${prefixes[index]}${unit}`;
}

const bits = (value) => scaled(value, "bit/s", 1000);
const size = (value) => scaled(value, "B", 1024);
const per_second = (value) => `${scaled(value, "", 1000).trim()}/s`;

function duration(seconds) {
  const two = (value) => String(value).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  const rest = `${two(Math.floor(seconds / 3600) % 24)}:${two(Math.floor(seconds / 60) % 60)}:${two(Math.floor(seconds) % 60)}`;
  return days ? `${days} d ${rest}` : rest;
}

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");
const place = (file, line) => (line ? `${file || "/etc/pf.conf"}:${line}` : "");
const rule_name = (anchor, rule) => (rule == null ? "" : anchor ? `${anchor}@${rule}` : `@${rule}`);

// ---- Session ----

function log_in() {
  end_view();
  end_view = () => {};
  me = null;
  for (const id of ["top", "views", "trial"]) $(id).hidden = true;
  const token = el("input", { type: "password", name: "token", required: true, autocomplete: "current-password", id: "token" });
  const error = el("p", { className: "wrong", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    error.textContent = "";
    try {
      const response = await fetch("/api/login", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ token: token.value }),
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
      begin(answer);
    } catch (failure) {
      error.textContent = failure.message;
      token.select();
    }
  };
  $("main").replaceChildren(el("section", { className: "login panel" },
    el("h1", {}, "skipstep"),
    el("form", { onsubmit: submit },
      el("label", { htmlFor: "token" }, "Token"), token,
      el("button", { className: "main" }, "Log in"), error),
    el("p", { className: "quiet" }, "On the filter's host, this command makes a token:"),
    el("pre", {}, "skipstep-broker token add writer NAME")));
  token.focus();
}

function begin(session) {
  me = session;
  for (const id of ["top", "views"]) $(id).hidden = false;
  $("host").textContent = me.host;
  $("user").textContent = `${me.name} (${me.can_change ? "may change the filter" : "may only look"})`;
  document.title = `${me.host} - skipstep`;
  $("views").replaceChildren(...VIEWS.map(([name, title], index) =>
    el("a", { href: `#${name}`, id: `view-${name}` }, title, " ", el("kbd", { "aria-hidden": "true" }, String(index + 1)))));
  follow_status();
  show_view();
}

let end_status = () => {};
/// Follows the filter's status and the load on trial.
function follow_status() {
  end_status();
  const end_requests = repeat(2, async () => {
    if (!me) return;
    [info, trial] = await Promise.all([get("info"), get("trial").then(with_end)]);
    last_complaint = "";
    show_status();
    show_trial();
  });
  const ticks = setInterval(show_seconds_left, 500);
  end_status = () => { end_requests(); clearInterval(ticks); };
}

function with_end(answer) {
  const pending = answer.pending;
  return pending && { ...pending, ends: Date.now() + pending.seconds_left * 1000 };
}

function show_status() {
  const status = $("status");
  status.className = info.enabled ? "pill pass" : "pill block";
  status.textContent = info.enabled ? `enabled, ${number(info.states.current)} states` : "disabled: every packet passes";
}

let shown_trial = "";
/// Shows the load on trial. The elements stay while the same load is on trial, for the focus.
function show_trial() {
  const banner = $("trial");
  const key = trial ? `${trial.loaded_at} ${trial.pid}` : "";
  if (key === shown_trial) return;
  shown_trial = key;
  banner.hidden = !trial;
  if (!trial) {
    banner.replaceChildren();
    return;
  }
  const run = (verb) => async () => {
    try {
      const { messages } = await change(verb);
      trial = with_end(await get("trial"));
      show_trial();
      if (current_view() === "load" || current_view() === "rules") show_view();
      say(messages);
    } catch (error) { complain(error); }
  };
  const source = trial.file === "-" || trial.file === "stdin" ? "from this page or standard input" : trial.file;
  banner.replaceChildren(
    el("span", {}, el("strong", {}, "Rules on trial"), ` (${source}, loaded at ${clock(trial.loaded_at)}): the rules before come back in `,
      el("strong", { id: "seconds-left" })),
    el("button", { id: "confirm", className: "main", disabled: !me.can_change, onclick: run("confirm") }, "Confirm"),
    el("button", { id: "revert", disabled: !me.can_change, onclick: run("revert") }, "Revert now"));
  show_seconds_left();
}

function show_seconds_left() {
  const element = $("seconds-left");
  if (element && trial) element.textContent = `${Math.max(0, Math.ceil((trial.ends - Date.now()) / 1000))} s`;
}

// ---- Views ----

const current_view = () => (location.hash.slice(1).split("?")[0] || "overview");
const view_fields = () => new URLSearchParams(location.hash.split("?")[1] || "");

function show_view() {
  if (!me) return;
  end_view();
  $("messages").replaceChildren();
  const name = current_view();
  const view = VIEWS.find(([candidate]) => candidate === name) || VIEWS[0];
  for (const [candidate] of VIEWS) {
    if (candidate === view[0]) $(`view-${candidate}`).setAttribute("aria-current", "page");
    else $(`view-${candidate}`).removeAttribute("aria-current");
  }
  const root = $("main");
  root.replaceChildren(el("h1", {}, view[1]));
  end_view = view[2](root, view_fields()) || (() => {});
}

/// A field for a filter. `/` focuses it.
function filter_field(value, placeholder, changed) {
  let timer = null;
  return el("input", {
    type: "search", id: "filter", value: value || "", placeholder, "aria-label": "Filter", spellcheck: false,
    oninput: () => { clearTimeout(timer); timer = setTimeout(changed, 150); },
  });
}

/// A button that acts at the second press, because its effect cannot be undone.
function sure_button(text, question, act) {
  let timer = null;
  const button = el("button", { className: "danger" }, text);
  button.addEventListener("click", () => {
    if (button.textContent === question) {
      clearTimeout(timer);
      button.textContent = text;
      act();
      return;
    }
    button.textContent = question;
    timer = setTimeout(() => { button.textContent = text; }, 4000);
  });
  return button;
}

function table_of(headings, body, id) {
  return el("div", { className: "scroll" }, el("table", { id }, el("thead", {}, el("tr", {}, ...headings)), body));
}

const heading = (text, is_number) => el("th", { scope: "col", className: is_number ? "number" : "" }, text);

// Overview: charts of the last hour.
function overview(root) {
  let samples = [];
  const ranges = [["5 minutes", 300], ["15 minutes", 900], ["1 hour", 3600]];
  let seconds = 300;
  const select = el("select", { id: "range", "aria-label": "Time", onchange: () => { seconds = Number(select.value); draw(); } },
    ...ranges.map(([name, value]) => el("option", { value: String(value) }, name)));
  const rate = (pick) => (a, b) => Math.max(0, pick(b) - pick(a)) / (b.time - a.time);
  const dropped = (sample) => Object.values(sample.reasons).reduce((sum, count) => sum + count, 0);
  const charts = [
    chart("Throughput", bits, [["in", rate((s) => s.bytes[0] * 8)], ["out", rate((s) => s.bytes[1] * 8)]]),
    chart("Blocked packets", per_second, [["in", rate((s) => s.blocked[0])], ["out", rate((s) => s.blocked[1])]]),
    chart("States", (value) => number(Math.round(value)), [["states", (a, b) => b.states]]),
    chart("New states, and drops for other reasons than a rule", per_second, [["new states", rate((s) => s.inserts)], ["drops", rate(dropped)]]),
  ];
  const reasons = el("tbody");
  root.append(el("div", { className: "tools" }, select),
    el("div", { className: "columns" }, ...charts.map((one) => one.element)),
    el("h2", {}, "Reasons of dropped packets, since the counters were cleared"),
    table_of([heading("Reason"), heading("Packets", true)], reasons, "reasons"));

  function draw() {
    const from = Date.now() / 1000 - seconds;
    const shown = samples.filter((sample) => sample.time >= from);
    for (const one of charts) one.draw(shown, from, seconds);
    const counters = Object.entries((info || { counters: {} }).counters).filter(([, count]) => count > 0);
    counters.sort((a, b) => b[1] - a[1]);
    const rows = counters.map(([name, count]) => el("tr", {},
      el("td", {}, name === "match" ? "match (packets that a rule decided, passed ones too)" : name), el("td", { className: "number" }, number(count))));
    reasons.replaceChildren(...rows);
  }
  return repeat(2, async () => {
    const after = samples.length ? samples[samples.length - 1].time : 0;
    samples.push(...await get("history", { after }));
    samples = samples.slice(-1800);
    draw();
  });
}

/// A chart of up to two curves. The pointer, or the arrow keys, show the values at a time.
function chart(title, unit, curves) {
  const width = 600, height = 160;
  const area = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", tabindex: "0" });
  const values = el("span", { className: "quiet" });
  const [left, right, top] = [el("span"), el("span", {}, "now"), el("span", { className: "quiet" })];
  let points = [], selected = null;
  const names = ["first", "second"];

  function draw(samples, from, seconds) {
    points = [];
    for (let index = 1; index < samples.length; index += 1) {
      const [a, b] = [samples[index - 1], samples[index]];
      points.push({ time: b.time, gap: b.time - a.time > 10, x: (b.time - from) / seconds * width, values: curves.map(([, value]) => value(a, b)) });
    }
    const most = Math.max(1, ...points.flatMap((point) => point.values));
    const parts = [0, height / 2, height - 1].map((y) => svg("line", { class: "grid", x1: 0, x2: width, y1: y, y2: y }));
    curves.forEach((_, curve) => {
      const path = points.map((point, index) => {
        const y = height - 2 - point.values[curve] / most * (height - 12);
        return `${index === 0 || point.gap ? "M" : "L"}${point.x.toFixed(1)} ${y.toFixed(1)}`;
      });
      parts.push(svg("path", { class: `curve ${names[curve]}`, d: path.join("") || "M0 0" }));
    });
    const chosen = selected == null ? null : points.reduce((best, point) => (!best || Math.abs(point.x - selected) < Math.abs(best.x - selected) ? point : best), null);
    if (chosen) parts.push(svg("line", { class: "cursor", x1: chosen.x, x2: chosen.x, y1: 0, y2: height }));
    area.replaceChildren(...parts);
    const point = chosen || points[points.length - 1];
    values.replaceChildren(...(point ? [el("span", {}, chosen ? `${clock(point.time)} ` : "")].concat(curves.map(([name], curve) =>
      el("span", { className: names[curve] }, `${name} ${unit(point.values[curve])}  `))) : ["waiting for two samples"]));
    area.setAttribute("aria-label", `${title}: ${values.textContent}`);
    top.textContent = `highest ${unit(most)}`;
    left.textContent = `${Math.round(seconds / 60)} min ago`;
    redraw = () => draw(samples, from, seconds);
  }
  let redraw = () => {};
  area.addEventListener("pointermove", (event) => { selected = event.offsetX / area.clientWidth * width; redraw(); });
  area.addEventListener("pointerleave", () => { selected = null; redraw(); });
  area.addEventListener("blur", () => { selected = null; redraw(); });
  area.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !points.length) return;
    event.preventDefault();
    selected = Math.min(width, Math.max(0, (selected == null ? width : selected) + step * width / 60));
    redraw();
  });
  const element = el("figure", { className: "panel" },
    el("figcaption", {}, el("strong", {}, title), values), area,
    el("div", { className: "axis" }, left, top, right));
  return { element, draw };
}

// Log and drops: live records.
const LOG_COLUMNS = [
  ["time", "Time", (record) => clock(record.time)],
  ["action", "Action", (record) => record.action],
  ["direction", "", (record) => record.direction],
  ["interface", "Interface", (record) => record.interface],
  ["rule", "Rule", (record) => rule_name(record.anchor, record.anchor == null ? record.rule : record.anchor_rule)],
  ["reason", "Reason", (record) => record.reason],
  ["packet", "Packet", (record) => record.packet],
];
const DROPS_COLUMNS = [
  ["time", "Time", (record) => clock(record.time)],
  ["reason", "Reason", (record) => record.reason],
  ["direction", "", (record) => record.direction || ""],
  ["interface", "Interface", (record) => record.interface],
  ["rule", "Rule", (record) => rule_name(record.anchor, record.rule)],
  ["place", "File and line", (record) => place(record.file, record.line)],
  ["packet", "Packet", (record) => record.packet || `${number(record.count)} more packets`],
];

function view_log(root) {
  return live_view(root, "log", LOG_COLUMNS, "No logged packet yet. Only packets of rules with the word log are logged.");
}

function view_drops(root) {
  return live_view(root, "drops", DROPS_COLUMNS, "No dropped packet yet.");
}

function live_view(root, verb, columns, when_empty) {
  let records = [], received = 0, left_out = 0, is_frozen = false, is_dirty = true;
  const chosen = []; // [column, value]
  const text = filter_field("", "192.0.2.7 tcp", () => { is_dirty = true; });
  const freeze = el("button", { id: "freeze", "aria-pressed": "false", onclick: toggle }, "Freeze");
  const chips = el("span", { className: "tools" });
  const counts = el("span", { className: "quiet", id: "counts" });
  const body = el("tbody");
  const empty = el("p", { className: "quiet" }, when_empty);
  root.append(el("div", { className: "tools" }, text, freeze,
    el("button", { onclick: () => { records = []; is_dirty = true; } }, "Clear"), chips, counts),
    el("p", { className: "quiet" }, "Click any value to show only its records."),
    table_of(columns.map(([, title]) => heading(title)), body, "records"), empty);

  function toggle() {
    is_frozen = !is_frozen;
    freeze.textContent = is_frozen ? "Go on" : "Freeze";
    freeze.setAttribute("aria-pressed", String(is_frozen));
    is_dirty = true;
  }
  function choose(column, value) {
    if (!chosen.some(([name, old]) => name === column && old === value)) chosen.push([column, value]);
    chips.replaceChildren(...chosen.map((one) => el("button", {
      className: "chip", title: "Remove this condition",
      onclick: () => { chosen.splice(chosen.indexOf(one), 1); choose_again(); },
    }, `${one[0]} ${one[1]} ×`)));
    is_dirty = true;
  }
  function choose_again() {
    const again = chosen.splice(0);
    chips.replaceChildren();
    for (const [column, value] of again) choose(column, value);
    is_dirty = true;
  }
  const value_of = Object.fromEntries(columns.map(([name, , value]) => [name, value]));
  const words_of = (value) => value.split(/[\s,]+/);
  function matches(record, words) {
    const is_chosen = ([column, value]) => (column === "packet"
      ? words_of(value_of.packet(record)).includes(value) : value_of[column](record) === value);
    if (!chosen.every(is_chosen)) return false;
    if (!words.length) return true;
    const line = columns.map(([, , value]) => value(record)).join(" ").toLowerCase();
    return words.every((word) => line.includes(word));
  }
  function cell(record, [name, , value]) {
    const shown = value(record);
    if (name === "time" || (name === "packet" && record.count > 1)) return el("td", { className: "short" }, shown);
    const button = (part) => el("button", { className: "plain", onclick: () => choose(name, part) }, part);
    if (name !== "packet") {
      const kind = name === "action" ? ` ${shown}` : "";
      return el("td", { className: `short${kind}` }, shown && button(shown));
    }
    const parts = shown.split(/(\s+)/).map((part) => (/[.:0-9a-z]/i.test(part) && part.trim() ? button(part.replace(/,$/, "")) : part));
    return el("td", { className: "mono" }, ...parts);
  }
  function draw() {
    if (is_dirty) {
      is_dirty = false;
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const shown = [];
      for (let index = records.length - 1; index >= 0 && shown.length < SHOWN; index -= 1) {
        if (matches(records[index], words)) shown.push(records[index]);
      }
      body.replaceChildren(...shown.map((record) => el("tr", {}, ...columns.map((column) => cell(record, column)))));
      empty.hidden = records.length > 0;
      counts.textContent = `${number(received)} received` + (left_out ? `, ${number(left_out)} of them left out because they came too fast` : "") + (is_frozen ? ", frozen" : "");
    }
  }
  const drawing = setInterval(draw, 250);
  const source = new EventSource(`/api/${verb}`);
  source.onmessage = (event) => {
    const batch = JSON.parse(event.data);
    if (batch.error) quietly(new Error(batch.error));
    const fresh = batch.records || [];
    received += fresh.length + (batch.left_out || 0);
    left_out += batch.left_out || 0;
    if (batch.missed) left_out += batch.missed;
    if (is_frozen) { counts.textContent = `${number(received)} received, frozen`; return; }
    records.push(...fresh);
    if (records.length > KEPT) records = records.slice(-KEPT);
    is_dirty = true;
  };
  view_keys = { " ": toggle };
  return () => { source.close(); clearInterval(drawing); view_keys = {}; };
}

// States.
const STATE_COLUMNS = [
  ["protocol", "Protocol"], ["interface", "Interface"], [null, "From"], [null, "To"], [null, "State"],
  ["age", "Age", true], ["expires", "Expires in", true], ["packets", "Packets", true], ["bytes", "Bytes", true], ["rule", "Rule"],
];

function view_states(root, fields) {
  let sort = "", descending = true, offset = 0, rows = new Map();
  const limit = 100;
  const text = filter_field(fields.get("filter"), "tcp 192.0.2.7 established", () => { offset = 0; load(); });
  const counts = el("span", { className: "quiet", id: "counts" });
  const body = el("tbody");
  const previous = el("button", { onclick: () => { offset = Math.max(0, offset - limit); load(); } }, "Previous");
  const next = el("button", { id: "next", onclick: () => { offset += limit; load(); } }, "Next");
  const headings = STATE_COLUMNS.map(([column, title, is_number]) => {
    const cell = heading(column ? "" : title, is_number);
    if (column) {
      cell.append(el("button", { className: "plain", onclick: () => {
        descending = sort === column ? !descending : true;
        sort = column;
        offset = 0;
        for (const other of headings) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
        load();
      } }, title));
    }
    return cell;
  });
  root.append(el("div", { className: "tools" }, text, previous, next, counts),
    table_of([...headings, heading("")], body, "states"));

  function row(state) {
    const kill = sure_button("Kill", "Really kill?", async () => {
      try {
        say((await change("kill", { id: state.id, creator: state.creator })).messages);
        load();
      } catch (error) { complain(error); }
    });
    kill.disabled = !me.can_change;
    kill.setAttribute("aria-label", `Kill the state from ${state.from} to ${state.to}`);
    const cells = STATE_COLUMNS.map(([, , is_number]) => el("td", { className: is_number ? "number" : "mono" }));
    return { element: el("tr", {}, ...cells, el("td", {}, kill)), cells };
  }
  function fill({ cells }, state) {
    const texts = [`${state.protocol} ${state.direction}`, state.interface, state.from, state.to, state.state, duration(state.age),
      duration(state.expires), number(state.packets), size(state.bytes)];
    texts.forEach((value, index) => { if (cells[index].textContent !== value) cells[index].textContent = value; });
    const rule = state.rule && rule_name(state.rule.anchor, state.rule.number);
    if (cells[9].textContent !== (rule || "")) cells[9].replaceChildren(rule ? el("a", { href: `#rules?rule=${encodeURIComponent(rule)}` }, rule) : "");
  }
  let turn = 0;
  async function load() {
    const mine = turn += 1;
    const query = { filter: text.value, offset, limit, descending };
    if (sort) query.sort = sort;
    const answer = await get("states", query).catch(quietly);
    if (!answer || mine !== turn) return;
    const shown = new Map();
    for (const state of answer.states) {
      const key = `${state.id}/${state.creator}`;
      const one = rows.get(key) || row(state);
      fill(one, state);
      shown.set(key, one);
    }
    const elements = [...shown.values()].map((one) => one.element);
    // rows that stay keep their elements, and the focus
    if (elements.length !== body.children.length || elements.some((element, index) => body.children[index] !== element)) {
      const focus = document.activeElement;
      body.replaceChildren(...elements);
      if (focus && body.contains(focus)) focus.focus();
    }
    rows = shown;
    const last = Math.min(offset + limit, answer.sorted);
    counts.textContent = `${number(answer.matching)} of ${number(answer.total)} states match` +
      (answer.matching ? `, ${number(offset + 1)} to ${number(last)} shown` : "") +
      (answer.sorted < answer.matching ? `; only the first ${number(answer.sorted)} are sorted: narrow the filter` : "");
    previous.disabled = offset === 0;
    next.disabled = last >= answer.sorted;
  }
  return repeat(3, load);
}

// Rules.
function view_rules(root, fields) {
  const text = filter_field(fields.get("rule"), "pass tcp @3", draw);
  const never = el("input", { type: "checkbox", id: "never", onchange: draw });
  const counts = el("span", { className: "quiet", id: "counts" });
  const body = el("tbody");
  let rules = [];
  root.append(el("div", { className: "tools" }, text, el("label", {}, never, "only rules that never matched"), counts),
    table_of([heading("Rule", true), heading(""), heading("Packets"), heading("Bytes", true), heading("States", true), heading("Place")], body, "rules"));

  function draw() {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const packets = (rule) => rule.packets_in + rule.packets_out;
    const most = Math.max(1, ...rules.map(packets));
    const name = (rule) => rule_name(rule.anchor, rule.number);
    const is_shown = (rule) => {
      if (never.checked && packets(rule) > 0) return false;
      const line = `${rule.rule} ${place(rule.file, rule.line)} ${rule.labels.join(" ")}`.toLowerCase();
      return words.every((word) => (word.includes("@") ? name(rule).toLowerCase() === word : line.includes(word)));
    };
    const shown = rules.filter(is_shown);
    body.replaceChildren(...shown.slice(0, 2000).map((rule) => {
      const kind = /^(pass|block|match)/.exec(rule.rule);
      const bar = el("span", { className: "bar" });
      // a logarithm, because few rules match nearly all packets
      bar.style.width = `${Math.round(100 * Math.log1p(packets(rule)) / Math.log1p(most))}%`;
      const hits = packets(rule) ? number(packets(rule)) : "never matched";
      const states = rule.states ? el("a", { href: `#states?filter=${encodeURIComponent(`rule=${rule.anchor}@${rule.number}`)}` }, number(rule.states)) : "0";
      return el("tr", {},
        el("td", { className: "number" }, name(rule)),
        el("td", { className: `mono ${kind ? kind[1] : ""}` }, rule.rule),
        el("td", {}, el("div", { className: "hits" }, bar, el("span", { className: packets(rule) ? "count" : "count quiet" }, hits))),
        el("td", { className: "number" }, size(rule.bytes_in + rule.bytes_out)),
        el("td", { className: "number" }, states),
        el("td", { className: "short quiet" }, place(rule.file, rule.line)));
    }));
    counts.textContent = `${number(shown.length)} of ${number(rules.length)} rules` + (shown.length > 2000 ? "; the first 2,000 are shown: narrow the filter" : "");
  }
  return repeat(3, async () => {
    rules = await get("rules");
    draw();
  });
}

// Tables.
function view_tables(root, fields) {
  let chosen = fields.get("table") ? { name: fields.get("table"), anchor: fields.get("anchor") || "" } : null;
  const body = el("tbody");
  const contents = el("section");
  root.append(table_of([heading("Table"), heading("Anchor"), heading("Addresses", true), heading("Matches", true), heading("No matches", true), heading("Flags")], body, "tables"), contents);

  async function load_tables() {
    const tables = await get("tables");
    body.replaceChildren(...tables.map((table) => el("tr", {},
      el("td", {}, el("a", { href: `#tables?${new URLSearchParams({ table: table.name, anchor: table.anchor })}` }, table.name)),
      el("td", {}, table.anchor),
      el("td", { className: "number" }, number(table.addresses)),
      el("td", { className: "number" }, number(table.match)),
      el("td", { className: "number" }, number(table.nomatch)),
      el("td", { className: "quiet" }, ["const", "persist", "counters"].filter((flag) => table[flag]).join(" ")))));
    if (!tables.length) body.replaceChildren(el("tr", {}, el("td", { colSpan: 6, className: "quiet" }, "There are no tables.")));
    if (chosen && !contents.firstChild) show_contents(tables.find((table) => table.name === chosen.name && table.anchor === chosen.anchor));
  }
  function show_contents(table) {
    const list = el("tbody");
    const counts = el("span", { className: "quiet", id: "counts" });
    const text = filter_field("", "192.0.2", draw);
    const address = el("input", { id: "address", placeholder: "192.0.2.0/24", "aria-label": "Address", required: true, spellcheck: false });
    const can_change = me.can_change && table && !table.const;
    let entries = [];
    const run = async (verb, value) => {
      try {
        say((await change(verb, { table: chosen.name, anchor: chosen.anchor, address: value })).messages);
        await load();
      } catch (error) { complain(error); }
    };
    const add = async (event) => { event.preventDefault(); await run("add", address.value.trim()); address.select(); };
    contents.replaceChildren(el("h2", {}, `Table ${chosen.name}` + (chosen.anchor ? ` of anchor ${chosen.anchor}` : "")),
      el("div", { className: "tools" }, text, counts,
        el("form", { className: "tools", onsubmit: add }, address, el("button", { className: "main", id: "add", disabled: !can_change }, "Add"))),
      table_of([heading("Address"), heading("States", true), heading("")], list, "addresses"));
    function draw() {
      const word = text.value.trim().toLowerCase();
      const shown = entries.filter((entry) => entry.address.includes(word));
      counts.textContent = `${number(shown.length)} of ${number(entries.length)} addresses` + (shown.length > 500 ? "; the first 500 are shown" : "");
      list.replaceChildren(...shown.slice(0, 500).map((entry) => {
        const name = (entry.negated ? "!" : "") + entry.address;
        const remove = sure_button("Delete", "Really delete?", () => run("delete", name));
        remove.disabled = !can_change;
        remove.setAttribute("aria-label", `Delete ${name}`);
        return el("tr", {}, el("td", { className: "mono" }, name), el("td", { className: "number" }, number(entry.states)), el("td", {}, remove));
      }));
    }
    async function load() {
      entries = await get("table", { table: chosen.name, anchor: chosen.anchor });
      draw();
    }
    load().catch(complain);
  }
  return repeat(5, load_tables);
}

// Explain.
function view_explain(root) {
  const field = (id, label, element) => [el("label", { htmlFor: id }, label), Object.assign(element, { id })];
  const select = (...values) => el("select", {}, ...values.map((value) => el("option", {}, value)));
  const [direction, interfaces, protocol, flags] = [select("in", "out"), select(), select("tcp", "udp"), select("S", "SA", "A", "FA", "R")];
  const [from, to] = [el("input", { value: "192.0.2.7:4000", spellcheck: false }), el("input", { value: "198.51.100.1:80", spellcheck: false })];
  const line = el("input", { id: "packet", className: "mono", spellcheck: false, "aria-label": "Packet" });
  const result = el("section", { id: "verdict", "aria-live": "polite" });
  const write = () => {
    const tail = protocol.value === "tcp" ? ` ${flags.value}` : "";
    flags.disabled = protocol.value !== "tcp";
    line.value = `${direction.value} ${interfaces.value} ${protocol.value} ${from.value.trim()} > ${to.value.trim()}${tail}`;
  };
  const explain = async (event) => {
    event.preventDefault();
    try {
      show(await get("explain", { packet: line.value }));
    } catch (error) {
      result.replaceChildren(el("p", { className: "wrong" }, error.message));
    }
  };
  const form = el("form", { onsubmit: explain },
    el("div", { className: "form panel", oninput: write },
      ...field("direction", "Direction", direction), ...field("interface", "Interface", interfaces),
      ...field("protocol", "Protocol", protocol), ...field("from", "From", from), ...field("to", "To", to),
      ...field("flags", "TCP flags", flags)),
    el("div", { className: "tools" }, el("label", { htmlFor: "packet" }, "Packet, as pfctl explain takes it")),
    el("div", { className: "tools" }, line, el("button", { className: "main" }, "Explain")));
  line.style.flex = "1";
  root.append(form, result);
  function show(answer) {
    const rule = answer.rule;
    result.replaceChildren(
      el("h2", { className: answer.verdict === "pass" ? "pass" : "block" }, `Verdict: ${answer.verdict}` + (answer.reason === "match" ? "" : ` (${answer.reason})`)),
      rule ? el("p", { className: "mono" }, el("a", { href: `#rules?rule=${encodeURIComponent(rule_name(rule.anchor, rule.number))}` }, rule_name(rule.anchor, rule.number)), ` ${rule.text} `,
        el("span", { className: "quiet" }, place(rule.file, rule.line))) : el("p", {}, "No rule decides."),
      el("ol", { className: "trace mono" }, ...answer.stages.map((stage) => el("li", { className: /: match/.test(stage) ? "decides" : "" }, stage))));
  }
  get("interfaces").then((list) => {
    interfaces.replaceChildren(...list.filter((one) => one.hook).map((one) => el("option", {}, one.name)));
    write();
  }).catch(complain);
  write();
}

// Load.
let draft = null; // the text that the user edits, also while another view is shown
function view_load(root) {
  const rules = el("textarea", { id: "text", spellcheck: false, "aria-label": "Rules", value: draft || "", oninput: () => { draft = rules.value; } });
  const seconds = el("input", { id: "seconds", type: "number", min: 10, max: 3600, value: 60, required: true });
  const write = el("input", { id: "write", type: "checkbox", checked: true });
  const result = el("section", { id: "result", "aria-live": "polite" });
  const run = (verb, show) => async () => {
    result.replaceChildren(el("p", { className: "quiet" }, "…"));
    const fields = { rules: rules.value };
    if (verb === "load") Object.assign(fields, { seconds: Number(seconds.value), write: write.checked });
    try {
      show(await change(verb, fields));
    } catch (error) {
      result.replaceChildren(el("pre", { className: "wrong" }, ...with_lines(error.message)));
    }
  };
  /// Makes "stdin:3:" of a message a button that selects the line.
  function with_lines(message) {
    return message.split(/(stdin:\d+)/).map((part) => {
      const found = /^stdin:(\d+)$/.exec(part);
      return found ? el("button", { className: "plain", onclick: () => select_line(Number(found[1])) }, `line ${found[1]}`) : part;
    });
  }
  function select_line(line) {
    const lines = rules.value.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    rules.focus();
    rules.setSelectionRange(start, start + (lines[line - 1] || "").length);
  }
  const read = async () => {
    try { draft = rules.value = await get("file"); } catch (error) { complain(error); }
  };
  root.append(
    el("p", { className: "quiet" }, "Rules are loaded on trial: unless you confirm them in time, the kernel restores the rules before, also if this page cannot reach the filter any more."),
    rules,
    el("div", { className: "tools" },
      el("button", { id: "read", onclick: read }, "Read /etc/pf.conf"),
      el("button", { id: "compare", disabled: !me.can_change, onclick: run("diff", show_difference) }, "Compare with /etc/pf.conf"),
      el("label", {}, "Seconds to confirm", seconds),
      el("label", {}, write, "write to /etc/pf.conf when confirmed"),
      el("button", { id: "load", className: "main", disabled: !me.can_change, onclick: run("load", show_loaded) }, "Load on trial")),
    result);
  if (draft == null) read();

  function show_loaded(answer) {
    result.replaceChildren(el("pre", {}, answer.messages || "Loaded."));
    get("trial").then((answer) => { trial = with_end(answer); show_trial(); if ($("confirm")) $("confirm").focus(); }).catch(complain);
  }
  const line_of = (text) => text.replace(/^stdin:/, "line ");
  function show_difference({ result: difference, messages }) {
    const part = (sign, kind, statement) => el("div", { className: kind }, `${sign} ${statement.text}`, el("span", { className: "quiet" }, statement.place ? `  ${line_of(statement.place)}` : ""));
    const lines = difference.rules.map((one) => (one.change === "removed" ? part("-", "removed", one.old)
      : one.change === "added" ? part("+", "added", one.new) : part("~", "moved", one.new)));
    const fate = (side) => `${side.fate.join(", ")}${side.rule ? ` by ${line_of(side.rule.place)}` : ""}`;
    const packets = difference.packets.map((one) => el("tr", {}, el("td", { className: "mono" }, one.packet), el("td", {}, fate(one.old)), el("td", {}, fate(one.new))));
    result.replaceChildren(
      el("h2", {}, lines.length ? "Rules that differ" : "The rules mean the same."),
      messages ? el("pre", { className: "match" }, ...with_lines(messages)) : "",
      el("div", { className: "diff mono" }, ...lines),
      packets.length ? el("h2", {}, "Packets with another fate, for instance") : "",
      packets.length ? table_of([heading("Packet"), heading("Now"), heading("Then")], el("tbody", {}, ...packets), "packets") : "");
  }
}

// ---- Keys, colours, start ----

let view_keys = {};

function show_help() {
  const keys = [["1 to 8", "show a view"], ["/", "go to the filter"], ["space", "freeze or go on, in Log and Drops"],
    ["Escape", "leave a field, close this window"], ["arrow keys", "move along a chart that has the focus"], ["?", "show these keys"]];
  $("help").replaceChildren(el("h2", {}, "Keys"),
    el("table", {}, ...keys.map(([key, what]) => el("tr", {}, el("td", { className: "short" }, el("kbd", {}, key)), el("td", {}, what)))),
    el("p", {}, el("button", { onclick: () => $("help").close() }, "Close")));
  $("help").showModal();
}

document.addEventListener("keydown", (event) => {
  if (!me || event.ctrlKey || event.altKey || event.metaKey) return;
  const is_field = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Escape" && is_field) event.target.blur();
  if (is_field || $("help").open) return;
  const view = VIEWS[Number(event.key) - 1];
  const is_button = event.target.tagName === "BUTTON" && event.key === " ";
  if (view) location.hash = view[0];
  else if (event.key === "/" && $("filter")) $("filter").focus();
  else if (event.key === "?") show_help();
  else if (view_keys[event.key] && !is_button) view_keys[event.key]();
  else return;
  event.preventDefault();
});

const THEMES = { system: "Colours: system", light: "Colours: light", dark: "Colours: dark" };

function set_theme(theme) {
  localStorage.setItem("theme", theme);
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $("theme").textContent = THEMES[theme];
}

$("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  set_theme(names[(names.indexOf(localStorage.getItem("theme") || "system") + 1) % names.length]);
});
$("keys").addEventListener("click", show_help);
$("logout").addEventListener("click", () => change("logout").then(log_in, complain));
window.addEventListener("hashchange", show_view);
set_theme(localStorage.getItem("theme") in THEMES ? localStorage.getItem("theme") : "system");
fetch("/api/session").then(async (response) => (response.ok ? begin(await response.json()) : log_in()), complain);
