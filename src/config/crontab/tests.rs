//! Whole tables in, jobs and faults out, with the schedules of the product.

use serde_json::Value;

use super::super::crontab_hosts::{Host, schedule_of};
use super::super::{
    Config, Fault, Form, JobConfig, Overrides, Paint, Severity, Source, Sources, load, load_at_start, render,
};

const NEW_YORK: Host = Host("America/New_York");

fn table(name: &str, text: &str, user_column: bool) -> Sources {
    Sources {
        files: vec![Source::in_memory(name, text, Form::Crontab { user_column })],
        faults: Vec::new(),
    }
}

fn started(sources: &Sources, host: &Host) -> (Config, Vec<Fault>) {
    load_at_start(sources, &|_| None, &Overrides::default(), host)
        .unwrap_or_else(|faults| panic!("{}", render(&faults, sources, Paint::Plain)))
}

/// What a start says of a user's table `x.crontab` in New York, without the note about its zone.
fn read(text: &str) -> (Vec<JobConfig>, Vec<Fault>) {
    let (config, mut faults) = started(&table("x.crontab", text, false), &NEW_YORK);
    faults.retain(|fault| fault.code != "lint/crontab-zone");
    (config.jobs, faults)
}

fn jobs(text: &str) -> Vec<JobConfig> {
    let (jobs, faults) = read(text);
    assert_eq!(faults, []);
    jobs
}

fn command(job: &JobConfig) -> &str {
    match &job.launch.command {
        super::super::CommandConfig::Shell(text) => text,
        super::super::CommandConfig::List(_) => panic!("a crontab has no lists"),
    }
}

/// Each fault as `line:column code message [help]`.
fn faults(text: &str) -> Vec<String> {
    let (_, faults) = read(text);
    faults
        .iter()
        .map(|fault| {
            let help = fault.help.as_ref().map(|help| format!(" [{help}]"));
            format!(
                "{}:{} {} {}{}",
                fault.at.line,
                fault.at.column,
                fault.code,
                fault.message,
                help.unwrap_or_default()
            )
        })
        .collect()
}

#[test]
fn variables_reach_the_lines_below_them() {
    let text = "\
1 * * * * first
SHELL=/bin/bash
PATH=/opt/bin:/usr/bin
HOME=/srv/app
A = 'b c '
2 * * * * second
A=d
CRON_TZ=Europe/Madrid
# name: third one
3 * * * * third
";
    let jobs = jobs(text);
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["x-1", "x-6", "third one"]);
    let environment = |job: &JobConfig| -> Vec<String> {
        let pair = |entry: &super::super::EnvironmentEntry| format!("{}={}", entry.key, entry.value);
        job.launch.environment.iter().map(pair).collect()
    };
    let [first, second, third] = jobs.as_slice() else {
        panic!("three jobs");
    };
    assert_eq!(environment(first), [""; 0]);
    assert_eq!(first.launch.shell.to_str(), Some("/bin/sh"));
    assert_eq!(
        first.launch.working_directory.as_ref().unwrap().to_str(),
        Some("~")
    );
    assert_eq!(
        environment(second),
        [
            "SHELL=/bin/bash",
            "PATH=/opt/bin:/usr/bin",
            "HOME=/srv/app",
            "A=b c "
        ]
    );
    assert_eq!(second.launch.shell.to_str(), Some("/bin/bash"));
    assert_eq!(
        second.launch.working_directory.as_ref().unwrap().to_str(),
        Some("/srv/app")
    );
    assert_eq!(environment(third)[3], "A=d");
    let zones: Vec<(&str, &str)> = jobs
        .iter()
        .map(|job| {
            (
                job.timezone.as_deref().unwrap(),
                job.timezone_from.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        zones,
        [
            ("America/New_York", "TZ"),
            ("America/New_York", "TZ"),
            ("Europe/Madrid", "CRON_TZ")
        ]
    );
}

#[test]
fn mail_is_a_label_with_a_warning() {
    let (jobs, faults) = read("MAILTO=ann@example.org\n@daily x\n");
    assert_eq!(
        (jobs[0].labels[0].key.as_str(), jobs[0].labels[0].value.as_str()),
        ("mailto", "ann@example.org")
    );
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].severity, Severity::Warning);
    assert!(
        faults[0]
            .to_string()
            .contains("x.crontab:1:1: warning[lint/crontab-mailto]")
    );
}

#[test]
fn the_zone_is_told() {
    let (_, faults) = started(&table("x.crontab", "@daily x", false), &NEW_YORK);
    assert_eq!(
        faults[0].to_string(),
        "x.crontab: note[lint/crontab-zone]: times are in America/New_York, the zone of this machine (from TZ)"
    );
}

#[test]
fn without_a_zone_nothing_is_scheduled() {
    for (host, part) in [
        (Host(""), "the zone of this machine is not known: it has none"),
        (
            Host("CET-1CEST"),
            "'CET-1CEST' (from TZ), is not known by that name",
        ),
    ] {
        let text = "1 * * * * a\nCRON_TZ=Europe/Madrid\n2 * * * * b\n";
        let (config, faults) = started(&table("x.crontab", text, false), &host);
        let names: Vec<&str> = config.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["x-3"]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].message.contains(part), "{}", faults[0]);
    }
    let text = "CRON_TZ=Mars/Olympus\n1 * * * * a\nCRON_TZ=UTC\n2 * * * * b\n";
    let (jobs, faults) = read(text);
    assert_eq!(jobs.len(), 1);
    assert_eq!((faults[0].at.line, faults[0].at.column), (1, 9));
    assert!(faults[0].message.contains("the lines below it are not scheduled"));
}

#[test]
fn a_line_below_a_faulty_setting_does_not_run() {
    for setting in ["SHELL=bash", "HOME=srv"] {
        let (name, _) = setting.split_once('=').unwrap();
        let (jobs, faults) = read(&format!(
            "1 * * * * a\n{setting}\n2 * * * * b\n{name}=/x\n3 * * * * c\n"
        ));
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["x-1", "x-5"]);
        assert_eq!(faults.len(), 1);
        assert_eq!(faults[0].at.line, 2);
    }
}

#[test]
fn names() {
    assert_eq!(
        faults("# name: a/b\n@daily x\n"),
        [
            "1:9 crontab/name job name must have 1 to 128 bytes and no control character, `/` or `#` [a comment `# name: x` above a line gives it a name of its own]"
        ]
    );
    assert_eq!(
        faults("# name: old\n\n# name: one\n# name: two\n# a word\nA=b\n@daily x\n# name: end\n"),
        [
            "1:9 lint/crontab-name no line stands below the name `old`",
            "3:9 lint/crontab-name no line stands below the name `one`",
            "8:9 lint/crontab-name no line stands below the name `end`",
        ]
    );
    // A faulty line takes its name with it.
    assert_eq!(faults("# name: a\n61 * * * * x\n@daily y\n").len(), 1);
    let (jobs, found) = read("# name: a\nA='b\n@daily x\n");
    assert_eq!((jobs[0].name.as_str(), found.len()), ("a", 1));
    let (jobs, found) = read("# name: a\n@daily x\n# name: a\n@daily y\n");
    assert_eq!(jobs.len(), 1);
    assert_eq!(found[0].message, "duplicate job 'a'");
    assert_eq!(found[0].related[0].0.line, 1);
}

#[test]
fn a_job_of_a_yaml_file_keeps_its_name() {
    let sources = Sources::in_memory(&[
        ("x.crontab", "@daily line\n@hourly other\n"),
        ("ductor.yaml", "jobs: [{name: x-1, command: own}]"),
    ]);
    let (config, faults) = started(&sources, &NEW_YORK);
    let all: Vec<(&str, &str)> = config
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), command(job)))
        .collect();
    assert_eq!(all, [("x-1", "own"), ("x-2", "other")]);
    assert!(faults.iter().any(|fault| fault.code == "crontab/name"));
}

#[test]
fn odd_lines_have_helpful_faults() {
    for (line, expected) in [
        (
            "export A=b",
            "minute: `export` is no number [remove `export`: a variable is set with NAME=value alone]",
        ),
        ("A=b c' d", ""),
        ("A='b", "the quote that opens here is never closed"),
        ("'A b'=c", "the variable name 'A b' is invalid"),
        ("@Daily x", "unknown nickname `@Daily`; did you mean `@daily`?"),
        (
            "@every 5m x",
            "unknown nickname `@every` [a crontab has no @every; write the job in YAML]",
        ),
        (
            "*/5 * /bin/x",
            "month, day-of-week: 3 fields are too few; write five [a line has five fields and then its command]",
        ),
        ("0 5 * * *", "the command is missing"),
        (
            "0 5 * * * root /bin/x",
            "the command begins with `root`, as if the line had a column for the user [name the file under `crontabs` as {path: …, user: true}]",
        ),
        ("0 5 * * * a\0b", "the line contains a NUL character"),
        ("RANDOM_DELAY=6", "RANDOM_DELAY delays nothing here"),
        (
            "TZ=UTC",
            "TZ reaches the commands only; CRON_TZ sets the zone of the schedules",
        ),
    ] {
        let found: Vec<String> = faults(line)
            .iter()
            .map(|fault| fault.splitn(3, ' ').nth(2).unwrap().to_owned())
            .collect();
        let wanted: Vec<&str> = (!expected.is_empty()).then_some(expected).into_iter().collect();
        assert_eq!(found, wanted, "{line}");
    }
}

#[test]
fn a_faulty_line_costs_no_other_at_a_start_and_everything_at_a_reload() {
    let sources = table("x.crontab", "60 * * * * a\n1 * * * * b\n", false);
    let (config, faults) = started(&sources, &NEW_YORK);
    assert_eq!(config.jobs.len(), 1);
    let faults: Vec<&Fault> = faults.iter().filter(|fault| fault.at.line > 0).collect();
    assert_eq!(faults[0].severity, Severity::Warning);
    let refused = load(&sources, &|_| None, &Overrides::default(), &NEW_YORK).unwrap_err();
    let refused = refused.iter().find(|fault| fault.is_error()).unwrap();
    assert_eq!(refused.message, faults[0].message);
}

#[test]
fn both_day_fields_are_either() {
    let chosen = |line: &str| jobs(line)[0].day_match;
    let or = Some(super::super::DayMatch::Or);
    for (fields, expected) in [
        ("0 0 13 * 5", or),
        ("0 0 */2 * 5", None),
        ("0 0 13 * *", None),
        ("0 0 ? * 5", None),
    ] {
        assert_eq!(chosen(&format!("{fields} x")), expected, "{fields}");
    }
    assert_eq!(
        jobs(" 0\t0  13 * 5\tx")[0].schedule.as_ref().unwrap().text,
        "0 0 13 * 5"
    );
}

#[test]
fn c1_a_percent_sign_cuts_the_command() {
    let text = "5 1 * * * echo \"$(date +%F)\"\n6 1 * * * echo \"$(date +\\%F)\"\n";
    let (jobs, found) = read(text);
    assert_eq!(jobs.len(), 1);
    assert_eq!(command(&jobs[0]), "echo \"$(date +%F)\"");
    assert_eq!((found[0].at.line, found[0].at.column), (1, 25));
    assert_eq!(found[0].help.as_deref(), Some("write \\% for a percent sign"));
    let yaml = "jobs: [{name: j, command: 'echo \"$(date +%F) \\%\"'}]";
    let (config, _) = started(&Sources::in_memory(&[("a.yaml", yaml)]), &NEW_YORK);
    assert_eq!(command(&config.jobs[0]), "echo \"$(date +%F) \\%\"");
}

#[test]
fn c7_dos_line_ends() {
    let jobs = jobs("\u{feff}* * * * * /bin/echo hi\r\n\r\n# c\r\nA=b\r\n0 5 * * * /bin/true");
    let commands: Vec<&str> = jobs.iter().map(command).collect();
    assert_eq!(commands, ["/bin/echo hi", "/bin/true"]);
    assert_eq!(jobs[1].launch.environment[0].value, "b");
    assert_eq!((jobs[0].at.column, jobs[1].at.line), (1, 5));
}

#[test]
fn c9_the_missing_slash_the_sixth_star_the_wrap() {
    let text = "*15 * * * * x\n0 0 * * * * x\n0 30 2 * * ? x\n0 8 * * sat-sun x\n60 * * * * x\n";
    let six = "this looks like six fields with the second first: those need `seconds: true`, and a crontab line has five";
    assert_eq!(
        faults(text),
        [
            "1:1 crontab/schedule minute: '*15' lacks a slash; write */15".to_owned(),
            "2:1 crontab/command second: 6 fields need seconds: true, and a crontab line has five [leave the first field out, or write the job in YAML]".to_owned(),
            format!("3:3 crontab/schedule hour: 30 is out of range 0-23 [{six}]"),
            "5:1 crontab/schedule minute: 60 is out of range 0-59; the full one is 0".to_owned(),
        ]
    );
    let (jobs, _) = read(text);
    let found = fires(&jobs[0], "2026-03-02T00:00:00-05:00", 2);
    assert_eq!(found, ["2026-03-07T08:00:00-05:00", "2026-03-08T08:00:00-04:00"]);
}

/// The next fires after an instant, on the job's own clock.
fn fires(job: &JobConfig, after: &str, count: usize) -> Vec<String> {
    let schedule = schedule_of(job);
    let after = crate::words::time::parse_instant(after).unwrap();
    schedule
        .instants(after.0, i64::MAX, count)
        .into_iter()
        .map(|instant| schedule.local_time(instant).unwrap())
        .collect()
}

/// Each line of a file of the field, against what is written beside it.
fn check_field_file(text: &str, expected: &str, user_column: bool) {
    let expected: Value = serde_json::from_str(expected).unwrap();
    let name = expected["file"].as_str().unwrap();
    let (config, faults) = started(&table(name, text, user_column), &NEW_YORK);
    let mut wanted_jobs = 0;
    for line in expected["lines"].as_array().unwrap() {
        let number = usize::try_from(line["line"].as_u64().unwrap()).unwrap();
        let fault = faults
            .iter()
            .find(|fault| fault.at.line == number && fault.code.starts_with("crontab/"));
        if line["status"] == "error" {
            let fault = fault.unwrap_or_else(|| panic!("line {number} is accepted"));
            check_fault(fault, line["why"].as_str().unwrap());
            continue;
        }
        assert_eq!(fault, None, "line {number}");
        match line["kind"].as_str().unwrap() {
            "entry" => {
                wanted_jobs += 1;
                let name = line["job"].as_str().unwrap();
                let job = config.jobs.iter().find(|job| job.name == name);
                check_job(job.unwrap_or_else(|| panic!("no job {name}")), line);
            }
            "variable" if line["name"] == "MAILTO" => {
                assert!(
                    faults
                        .iter()
                        .any(|fault| fault.at.line == number && fault.code == "lint/crontab-mailto")
                );
            }
            "variable" => {
                let last = &config.jobs.last().unwrap().launch.environment;
                let entry = last.iter().find(|entry| entry.key == line["name"]).unwrap();
                assert_eq!(entry.value, line["value"].as_str().unwrap());
            }
            _ => {}
        }
    }
    assert_eq!(config.jobs.len(), wanted_jobs);
}

/// The field, or the part, that is at fault is named.
fn check_fault(fault: &Fault, why: &str) {
    let text = fault.to_string();
    let part = match why {
        "bad command" => "command is missing",
        "bad time specifier" => "unknown nickname",
        _ if why.contains("unescaped %") => "write \\% for",
        _ if why.contains("leading '-'") => "a leading '-'",
        _ => why.strip_prefix("bad ").unwrap(),
    };
    let is_sixth = why == "bad command" && text.contains("6 fields need seconds: true");
    assert!(text.contains(part) || is_sixth, "{text} should say {why}");
    assert!(fault.at.column > 0);
}

fn check_job(job: &JobConfig, line: &Value) {
    let text = |word: &str| line[word].as_str();
    assert_eq!(job.schedule.as_ref().unwrap().text, text("schedule").unwrap());
    assert_eq!(command(job), text("command").unwrap());
    assert_eq!(job.launch.user.as_deref(), text("user"));
    assert_eq!(job.timezone.as_deref(), text("zone"));
    for (word, after) in [
        ("next5", "2026-03-07T12:00:00-05:00"),
        ("next5_from_2026-10-31T12:00", "2026-10-31T12:00:00-04:00"),
    ] {
        let wanted: Vec<&str> = line[word]
            .as_array()
            .into_iter()
            .flatten()
            .map(|instant| instant.as_str().unwrap())
            .collect();
        assert_eq!(fires(job, after, 5), wanted, "{} {word}", job.name);
    }
}

#[test]
fn the_webapp_table_of_the_field() {
    let text = include_str!("../../../tests/field/webapp.crontab");
    check_field_file(
        text,
        include_str!("../../../tests/field/webapp.expect.json"),
        false,
    );
}

#[test]
fn the_system_table_of_the_field() {
    let text = include_str!("../../../tests/field/system-debianish.crontab");
    check_field_file(
        text,
        include_str!("../../../tests/field/system-debianish.expect.json"),
        true,
    );
}

#[test]
fn the_mistakes_of_the_field() {
    let text = include_str!("../../../tests/field/mistakes.crontab");
    check_field_file(
        text,
        include_str!("../../../tests/field/mistakes.expect.json"),
        false,
    );
}
