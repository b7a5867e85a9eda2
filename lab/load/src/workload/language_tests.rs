use super::*;
use proptest::prelude::*;

fn command(words: &[&str], line: usize) -> Job {
    Job::Command { words: words.iter().map(|word| word.to_string()).collect(), line }
}

/// The four examples in the paper's appendix A.
#[test]
fn the_examples_of_the_paper() {
    assert_eq!(
        parse("sequential 1 { command \"ls -l\" }"),
        Ok(Job::Sequential { repeat: 1, jobs: vec![command(&["ls", "-l"], 1)] })
    );
    assert_eq!(
        parse("parallel 5 { command \"ls -l\" }"),
        Ok(Job::Parallel { repeat: 5, jobs: vec![command(&["ls", "-l"], 1)] })
    );
    let job = parse("sequential 3 { parallel 5 { command \"ls -l\" } }").unwrap();
    assert_eq!(job.commands(), 15);
    let job = parse(
        "sequential 3 {\n\trandom 5 42 1 3 {\n\t\tcommand \"test-script\"\n\t}\n}\n# the end\n",
    );
    assert_eq!(
        job,
        Ok(Job::Sequential {
            repeat: 3,
            jobs: vec![Job::Random {
                repeat: 5,
                seed: 42,
                low: 1.0,
                high: 3.0,
                jobs: vec![command(&["test-script"], 3)],
            }],
        })
    );
}

#[test]
fn the_example_of_the_documentation() {
    let page = include_str!("../../../../docs/reference/workload.md");
    let example = page.split("```").nth(1).unwrap();
    assert_eq!(parse(example).unwrap().commands(), 40);
}

#[test]
fn space_and_comments_only_separate() {
    let tight = parse("sequential 2{parallel{command\"a\"command \"b  c\"}}").unwrap();
    let wide =
        parse("# x\n sequential # y \"\n 2\n{ parallel\n{ command\n\"a\" command \"b\tc\" } }# z");
    assert_eq!(tight.to_string(), wide.unwrap().to_string());
    // A comment sign in a string is no comment, and nothing is expanded.
    assert_eq!(parse("command \"ls # *.c $HOME\""), Ok(command(&["ls", "#", "*.c", "$HOME"], 1)));
    assert_eq!(parse("\ncommand \"é ü\" # ö"), Ok(command(&["é", "ü"], 2)));
    assert!(matches!(
        parse("random 1 4294967295 0 .5 { command \"a\" }"),
        Ok(Job::Random { high: 0.5, .. })
    ));
}

#[track_caller]
fn wrong(text: &str, line: usize, column: usize, what: &str) {
    let mistake = parse(text).unwrap_err();
    assert_eq!((mistake.line, mistake.column, mistake.what.as_str()), (line, column, what));
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let job = "expected a job: command, sequential, parallel or random, not";
    wrong("", 1, 1, &format!("{job} the end of the file"));
    wrong("# only this\n", 1, 12, &format!("{job} the end of the file"));
    wrong("  serial { command \"a\" }", 1, 3, &format!("{job} serial"));
    wrong("parallel 2 { \"a\" }", 1, 14, &format!("{job} \"a\""));
    wrong("command ls", 1, 9, "expected a command in quotes, not ls");
    wrong("command \"ls", 1, 9, "the string has no closing quote on its line");
    wrong("command \" \"", 1, 9, "this command names no program");
    wrong("sequential {\n}", 2, 1, "there must be a job between { and }");
    wrong("sequential 2 {\n command \"a\"", 1, 14, "this { is not closed");
    wrong("sequential -1 { command \"a\" }", 1, 12, "expected the number of repetitions, not -1");
    wrong("parallel 0 { command \"a\" }", 1, 10, "expected 1 to 1000000 times");
    wrong("parallel 99999999999 {}", 1, 10, "99999999999 is larger than 4294967295");
    wrong("random { command \"a\" }", 1, 8, "expected the number of repetitions, not {");
    wrong("random 1 2 3 { command \"a\" }", 1, 14, "expected the longest gap in seconds, not {");
    wrong("random 1 2 1.2.3 4 {}", 1, 12, "expected the shortest gap in seconds, not 1.2.3");
    wrong("random 1 2 3 1 {}", 1, 14, "the longest gap is shorter than the shortest");
    wrong("random 1 2 3 99999999 {}", 1, 14, "a gap is at most 86400 seconds");
    wrong("command \"é\" }", 1, 13, "a workload is one job, but } follows the job");
    wrong("sequential 2 command \"a\"", 1, 14, "expected {, not command");
}

#[test]
fn a_mistake_is_explained() {
    let text = "parallel {\n\tcommand ls\n}\n";
    let message = parse(text).unwrap_err().explain("load", text);
    assert_eq!(
        message,
        "load:2:10: expected a command in quotes, not ls\n\tcommand ls\n\t        ^\nhelp: command \"program argument …\"\n"
    );
}

#[test]
fn nesting_has_an_end() {
    let nested = |depth: usize| {
        format!("{}command \"a\"{}", "parallel { ".repeat(depth), " }".repeat(depth))
    };
    assert_eq!(parse(&nested(DEEPEST)).unwrap().commands(), 1);
    let mistake = parse(&nested(100_000)).unwrap_err();
    assert_eq!(mistake.what, "jobs are nested deeper than 500 levels");
    let many = "parallel 1000000 { ".repeat(9) + "command \"a\"" + &" }".repeat(9);
    assert_eq!(parse(&many).unwrap().commands(), u64::MAX);
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused_with_a_position(text in "([a-z]{1,6}|command \"a b\"|sequential|parallel|random|[0-9.]{1,3}|[{}#\"\n\t é]){0,30}") {
        match parse(&text) {
            Ok(job) => {
                let printed = job.to_string();
                prop_assert_eq!(parse(&printed).unwrap().to_string(), printed);
            }
            Err(mistake) => {
                prop_assert!(mistake.line >= 1 && mistake.column >= 1);
                prop_assert!(mistake.explain("file", &text).contains('^'));
            }
        }
    }
}
