//! The files of the page, which are part of the program.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// Answers with the page.
pub async fn index() -> Response {
    file("text/html; charset=utf-8", include_str!("../page/index.html"))
}

/// Answers with the page's script.
pub async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../page/page.js"))
}

/// Answers with the page's style.
pub async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("../page/page.css"))
}

/// Answers with the page's icon.
pub async fn icon() -> Response {
    file("image/svg+xml", include_str!("../page/icon.svg"))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_has_no_inline_script_or_style_and_loads_nothing_from_elsewhere() {
        let page = include_str!("../page/index.html");
        for text in ["<style", " style=", " onclick=", "javascript:", "<script>", "http:", "https:"]
        {
            assert!(!page.contains(text), "{text}");
        }
        let script = include_str!("../page/page.js");
        for text in ["innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "https:"] {
            assert!(!script.contains(text), "{text}");
        }
    }
}
