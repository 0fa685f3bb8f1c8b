//! Dags: texts in, configuration or faults out.

use super::load_tests::{faults, good, loaded, shown};
use super::{
    ClusterPolicy, CommandConfig, Config, DagConfig, ExpandConfig, OnMissed, OnReject, TaskKind, TriggerRule,
    WorkConfig,
};

/// The faults of a dag `d` whose tasks are given, one in each line.
fn task_faults(tasks: &str) -> Vec<String> {
    let lines: Vec<String> = tasks.lines().map(|line| format!("      - {line}")).collect();
    faults(&format!(
        "pools: {{p: {{slots: 2}}}}\ndags:\n  - name: d\n    tasks:\n{}\n",
        lines.join("\n")
    ))
}

fn dag(config: &Config) -> &DagConfig {
    &config.dags[0]
}

fn work<'d>(dag: &'d DagConfig, id: &str) -> &'d WorkConfig {
    let task = dag.tasks.iter().find(|task| task.id == id).unwrap();
    task.work().unwrap()
}

#[test]
fn a_dag_with_every_kind_of_task() {
    let config = good(
        "pools: {p: {slots: 3}}\ndags:\n  - name: nightly load\n    schedule: {hour: 3}\n    timezone: Europe/Madrid\n    \
         onMissed: run-once\n    startingDeadlineSeconds: 600\n    clusterPolicy: EveryNode\n    \
         sla: {maxRuntime: 1h}\n    retainRuns: 7\n    tasks:\n      - id: list\n        command: [list, files]\n        \
         retries: 2\n        retryDelaySeconds: 1.5\n      - id: load 1\n        command: load\n        \
         dependsOn: [list]\n        expand: {fromTask: list, key: files}\n        pool: p\n        poolSlots: 2\n      \
         - id: there\n        type: sensor\n        command: test -e flag\n        pokeIntervalSeconds: 0.5\n        \
         pokeTimeoutSeconds: 5m\n      - {id: ok, type: approval, dependsOn: [load 1, there, there], \
         triggerRule: all_done, onReject: skip}\n",
    );
    let dag = dag(&config);
    assert_eq!(dag.name, "nightly load");
    assert_eq!(dag.schedule.as_ref().unwrap().text, "* 3 * * *");
    assert_eq!(dag.policy.on_missed, OnMissed::RunOnce);
    assert_eq!(dag.policy.starting_deadline_ms, Some(600_000));
    assert_eq!(dag.policy.cluster_policy, ClusterPolicy::EveryNode);
    assert_eq!((dag.sla.max_runtime_ms, dag.retain_runs), (Some(3_600_000), 7));
    let list = work(dag, "list");
    assert_eq!(
        list.launch.command,
        CommandConfig::List(vec!["list".to_owned(), "files".to_owned()])
    );
    assert_eq!((list.retries, list.retry_delay_ms), (2, 1_500));
    assert!(list.slots.is_none() && list.expand.is_none());
    let load = work(dag, "load 1");
    assert_eq!((load.retries, load.retry_delay_ms), (0, 0));
    assert_eq!(load.slots.as_ref().map(|slots| slots.slots), Some(2));
    let expand = ExpandConfig {
        from_task: "list".to_owned(),
        key: "files".to_owned(),
    };
    assert_eq!(load.expand.as_ref(), Some(&expand));
    assert!(matches!(
        dag.tasks[2].kind,
        TaskKind::Sensor {
            poke_interval_ms: 500,
            poke_timeout_ms: 300_000,
            ..
        }
    ));
    let ok = &dag.tasks[3];
    assert_eq!(ok.depends_on, ["load 1", "there"]);
    assert_eq!(ok.trigger_rule, TriggerRule::AllDone);
    assert!(matches!(
        ok.kind,
        TaskKind::Approval {
            on_reject: OnReject::Skip
        }
    ));
}

#[test]
fn what_is_not_said_has_a_default() {
    let config =
        good("dags:\n  - name: d\n    tasks: [{id: s, type: sensor, command: x}, {id: a, type: approval}]\n");
    let dag = dag(&config);
    assert!(dag.enabled && dag.schedule.is_none());
    assert_eq!((dag.retain_runs, dag.policy.on_missed), (50, OnMissed::Skip));
    let TaskKind::Sensor {
        poke_interval_ms,
        poke_timeout_ms,
        ..
    } = dag.tasks[0].kind
    else {
        panic!("{:?}", dag.tasks[0]);
    };
    assert_eq!((poke_interval_ms, poke_timeout_ms), (30_000, 3_600_000));
    assert_eq!(dag.tasks[0].trigger_rule, TriggerRule::AllSuccess);
}

/// Test 3 of the list, for tasks: what `defaults` say reaches every command and no approval.
#[test]
fn pool_inheritance_of_tasks() {
    let config = good(
        "pools: {p: {slots: 2}}\ndefaults:\n  pool: p\n  queuePriority: 4\n  killTimeout: 5\n  verify: {command: check}\n  \
         onMissed: run-all\n  timezone: Europe/Madrid\n  onFailure: {retry: {maximumRetries: 9}}\n  \
         onlyIfLastSucceeded: true\ndags:\n  - name: d\n    tasks:\n      - {id: a, command: x}\n      \
         - {id: b, command: x, pool: }\n      - {id: c, type: approval}\n      \
         - {id: e, type: approval, pool: null}\n",
    );
    let dag = dag(&config);
    assert_eq!(dag.policy.on_missed, OnMissed::RunAll);
    assert_eq!(dag.timezone.as_deref(), Some("Europe/Madrid"));
    assert_eq!(dag.policy.retry.maximum_retries, Some(0));
    assert!(!dag.policy.only_if_last_succeeded);
    let a = work(dag, "a");
    assert_eq!(a.slots.as_ref().map(|slots| slots.priority), Some(4));
    assert_eq!((a.launch.kill_timeout_ms, a.retries), (5_000, 0));
    assert!(a.launch.verify.is_some());
    assert!(work(dag, "b").slots.is_none());
    assert!(matches!(dag.tasks[2].kind, TaskKind::Approval { .. }));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
fn every_faulty_task_is_named_with_its_rule() {
    for (tasks, expected) in [
        ("{id: a}", "5:14 task 'd.a': command is missing"),
        ("{command: x}", "5:9 a task needs an `id`"),
        (
            "{id: a#1, command: x}",
            "5:14 task id must have 1 to 100 bytes and no control character, `/` or `#`",
        ),
        ("{id: a, command: ''}", "5:26 task 'd.a': command is empty"),
        (
            "{id: a, command: x, type: snsor}",
            "5:35 task 'd.a': unknown type [did you mean `sensor`?]",
        ),
        (
            "{id: a, command: x, triggerRule: any}",
            "5:42 task 'd.a': unknown triggerRule",
        ),
        (
            "{id: a, command: x, retries: 1001}",
            "5:38 task 'd.a': retries is out of range [allowed are 0 to 1000]",
        ),
        (
            "{id: a, type: sensor, command: x, pokeIntervalSeconds: 0}",
            "5:64 task 'd.a': pokeIntervalSeconds must be > 0",
        ),
        (
            "{id: a, type: sensor, command: x, pokeTimeoutSeconds: 0}",
            "5:63 task 'd.a': pokeTimeoutSeconds must be > 0",
        ),
        (
            "{id: a, type: approval, onReject: stop}",
            "5:43 task 'd.a': onReject must be fail or skip [did you mean `skip`?]",
        ),
        (
            "{id: a, command: x, pool: q}",
            "5:35 task 'd.a': unknown pool 'q'",
        ),
        (
            "{id: a, command: x, pool: p, poolSlots: 3}",
            "5:49 task 'd.a': poolSlots exceeds pool capacity [`p` has 2 slots]",
        ),
        (
            "{id: a, command: x, poolSlots: 1}",
            "5:29 poolSlots, queuePriority and queueTimeout need pool",
        ),
        (
            "{id: a, type: approval, pool: p}",
            "5:33 task 'd.a': approval gates cannot use pool or verify",
        ),
        (
            "{id: a, type: approval, verify: {command: x}}",
            "5:33 task 'd.a': approval gates cannot use pool or verify",
        ),
        (
            "{id: a, type: approval, retries: 1}",
            "5:33 task 'd.a': an approval runs nothing and cannot use `retries`",
        ),
        (
            "{id: a, command: x, onReject: skip}",
            "5:29 task 'd.a': `onReject` needs `type: approval` [only an approval has it]",
        ),
        (
            "{id: a, command: x, priority: 3}",
            "5:29 'priority' is not supported yet",
        ),
        (
            "{id: a, command: x, dependsOm: []}",
            "5:29 unknown key `dependsOm` in a task [did you mean `dependsOn`?]",
        ),
        (
            "{id: a, command: x, secrets: [{name: S}]}",
            "5:46 task 'd.a': secret 'S': give fromFile or fromEnvVar",
        ),
        (
            "{id: a, command: x, killTimeout: 2h}",
            "5:42 task 'd.a': killTimeout must be between 0 and 3600",
        ),
    ] {
        assert_eq!(task_faults(tasks), [expected], "{tasks}");
    }
}

#[test]
fn what_is_wrong_between_tasks_is_told() {
    for (tasks, expected) in [
        (
            "{id: load, command: x}\n{id: b, command: x, dependsOn: [laod]}",
            "6:41 task 'd.b': unknown dependency 'laod' [did you mean `load`?]",
        ),
        (
            "{id: a, command: x}\n{id: a, command: y}",
            "6:14 dag 'd': duplicate task 'a'",
        ),
        (
            "{id: a, command: x, dependsOn: [a]}",
            "5:41 dag 'd': cycle: a -> a",
        ),
        (
            "{id: z, command: x}\n{id: a, command: x, dependsOn: [z, b]}\n{id: b, command: x, dependsOn: [z, a]}",
            "7:44 dag 'd': cycle: a -> b -> a",
        ),
        (
            "{id: a, command: x}\n{id: b, command: x, expand: {fromTask: a, key: k}}",
            "6:48 task 'd.b': expand.fromTask must be a direct dependency [add `a` to `dependsOn`]",
        ),
        (
            "{id: a, type: approval}\n{id: b, command: x, dependsOn: [a], expand: {fromTask: a, key: k}}",
            "6:64 task 'd.b': expand.fromTask must be a direct dependency [`a` is an approval and writes nothing]",
        ),
        (
            "{id: a, command: x}\n{id: b, command: x, dependsOn: [a], expand: {fromTask: a, key: k}}\n{id: c, command: x, dependsOn: [b], expand: {fromTask: b, key: k}}",
            "7:64 task 'd.c': expand.fromTask must be a direct dependency [`b` is expanded itself: it has an output for each of its instances, not one]",
        ),
        (
            "{id: a, command: x}\n{id: b, command: x, dependsOn: [a], expand: {fromTask: a}}",
            "6:45 task 'd.b': expand needs `fromTask` and `key`",
        ),
    ] {
        assert_eq!(task_faults(tasks), [expected], "{tasks}");
    }
}

#[test]
fn a_long_cycle_is_shortened() {
    let tasks: Vec<String> = (0..400)
        .map(|number| {
            format!(
                "{{id: t{number}, command: x, dependsOn: [t{}]}}",
                (number + 1) % 400
            )
        })
        .collect();
    let found = task_faults(&tasks.join("\n"));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].ends_with(
            "cycle: t0 -> t1 -> t2 -> t3 -> t4 -> t5 -> ... -> t395 -> t396 -> t397 -> t398 -> t399 -> t0"
        ),
        "{found:?}"
    );
}

#[test]
fn every_faulty_dag_is_named_with_its_rule() {
    let task = "tasks: [{id: a, command: x}]";
    for (keys, expected) in [
        ("name: d", "2:12 dag 'd': no tasks"),
        ("name: d, tasks: []", "2:15 dag 'd': no tasks"),
        (task, "2:5 a dag needs a `name`"),
        (
            &format!("name: a/b, {task}"),
            "2:12 dag name must have 1 to 128 bytes and no control character, `/` or `#`",
        ),
        (
            &format!("name: d, schedule: '@reboot', {task}"),
            "2:25 dag 'd': schedule: `@reboot` is for jobs only",
        ),
        (
            &format!("name: d, schedule: '* * x * *', {task}"),
            "2:30 dag 'd': schedule: `x` is no number",
        ),
        (
            &format!("name: d, timezone: Mars, {task}"),
            "2:25 dag 'd': unknown time zone 'Mars'",
        ),
        (
            &format!("name: d, retainRuns: 0, {task}"),
            "2:27 dag 'd': retainRuns must be at least 1 [allowed are 1 to 100000]",
        ),
        (
            &format!("name: d, concurrencyPolicy: Forbid, {task}"),
            "2:15 'concurrencyPolicy' is not supported yet",
        ),
        (
            &format!("name: d, onFailure: {{retry: {{maximumRetries: 1}}}}, {task}"),
            "2:27 dag 'd': a dag is not tried again as a whole [give its tasks `retries` and `retryDelaySeconds`]",
        ),
        (
            &format!("name: d, onLate: {{report: {{shell: {{command: x}}}}}}, {task}"),
            "2:15 dag 'd': onLate requires sla",
        ),
        (
            &format!("name: d, command: x, {task}"),
            "2:15 unknown key `command` in a dag",
        ),
    ] {
        assert_eq!(faults(&format!("dags:\n  - {{{keys}}}\n")), [expected], "{keys}");
    }
    let many: Vec<String> = (0..501)
        .map(|number| format!("{{id: t{number}, command: x}}"))
        .collect();
    let found = faults(&format!("dags:\n  - {{name: d, tasks: [{}]}}\n", many.join(", ")));
    assert_eq!(found, ["2:15 dag 'd': more than 500 tasks"]);
}

#[test]
fn all_faults_of_a_dag_are_told_at_once_with_carets() {
    let text = "\
pools: {db: {slots: 2}}
dags:
  - name: load
    tasks:
      - {id: a, command: x, pool: bd}
      - {id: b, dependsOn: [a, x]}
      - {id: c, type: approval, pool: db}
";
    let found = loaded(&[("ductor.yaml", text)]).unwrap_err();
    assert_eq!(found.len(), 4, "{}", shown(text, &found));
    let shown = shown(text, &found);
    assert!(
        shown.contains("task 'load.a': unknown pool 'bd'") && shown.contains("^^"),
        "{shown}"
    );
}

#[test]
fn jobs_and_dags_share_their_names_over_all_files() {
    let dag = "dags:\n  - {name: one, tasks: [{id: a, command: x}]}\n";
    let found = loaded(&[
        ("a.yaml", dag),
        ("b.yaml", "jobs:\n  - {name: one, command: x}\n"),
    ])
    .unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    let fault = &found[0];
    assert_eq!(fault.message, "duplicate dag 'one'");
    assert_eq!((&*fault.at.file, fault.at.line), ("a.yaml", 2));
    let (place, sentence) = &fault.related[0];
    assert_eq!((&*place.file, place.line), ("b.yaml", 2));
    assert_eq!(sentence, "a job of this name stands here");
    let found = loaded(&[("a.yaml", dag), ("b.yaml", dag)]).unwrap_err();
    assert_eq!(found[0].related[0].1, "the first one stands here");
}

#[test]
fn variables_are_replaced_where_they_are_for_jobs() {
    let config = good(
        "dags:\n  - name: d\n    tasks:\n      - {id: a, command: 'echo ${X}', workingDirectory: '${X}/in', \
         verify: {command: 'test ${X}'}}\n",
    );
    let a = work(dag(&config), "a");
    assert_eq!(a.launch.command, CommandConfig::Shell("echo ${X}".to_owned()));
    assert_eq!(a.launch.working_directory, Some("/srv/x/in".into()));
    let verify = a.launch.verify.as_ref().unwrap();
    assert_eq!(verify.command, CommandConfig::Shell("test ${X}".to_owned()));
}
