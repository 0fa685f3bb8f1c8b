//! A whole crontab: its lines one after the other, each of which becomes a job, a setting or a fault.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::super::fault::{Fault, Place, shown};
use super::super::job_layer::{JobLayer, is_environment_key};
use super::super::jobs::{RawJob, RawJobs};
use super::super::keys::nearest;
use super::super::model::{CommandConfig, DayMatch, JobConfig, Label};
use super::super::names::Owner;
use super::super::reading::Reading;
use super::super::schedule_text::{RawSchedule, ScheduleCheck, ScheduleFault};
use super::super::slot_pools::SlotPools;
use super::line::{Entry, Line, LineFault, lines, read_line, unescaped, word};
use super::settings::{Setting, Settings};
use crate::os::zone::HostZone;

/// Bytes of one line: what the kernel takes as one argument, and a shell gets the command as one.
const LINE_BYTES_MAX: usize = 128 * 1024 - 1;

/// The nicknames that cron knows.
const NICKNAMES: [&str; 8] = [
    "@reboot",
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

const SIX_FIELDS: &str = "this looks like six fields with the second first: those need `seconds: true`, and a crontab line has five";

/// Reads one table.
pub(in super::super) struct TableReader<'r, 'a> {
    reading: &'r mut Reading<'a>,
    schedules: &'r dyn ScheduleCheck,
    file: usize,
    has_user_column: bool,
    /// The beginning of a job's name that has none of its own.
    stem: String,
    settings: Settings,
    /// The `# name:` that waits for its line.
    name: Option<(String, Place)>,
    host: HostAnswer,
}

/// What the host has said about its zone.
enum HostAnswer {
    NotAsked,
    Zone(HostZone),
    /// Reported.
    Nothing,
}

/// The line at hand.
struct Here<'t> {
    text: &'t str,
    number: usize,
    /// The byte of the file where it begins.
    start: usize,
}

impl<'r, 'a> TableReader<'r, 'a> {
    pub(in super::super) fn new(
        reading: &'r mut Reading<'a>,
        schedules: &'r dyn ScheduleCheck,
        file: usize,
        has_user_column: bool,
    ) -> Self {
        let name = Path::new(&*reading.source.name);
        let stem = name.file_stem().unwrap_or(name.as_os_str());
        Self {
            stem: stem.to_string_lossy().into_owned(),
            reading,
            schedules,
            file,
            has_user_column,
            settings: Settings::default(),
            name: None,
            host: HostAnswer::NotAsked,
        }
    }

    /// Gives each good job to `keep` until that says no, or until there are too many jobs.
    pub(in super::super) fn read(
        mut self,
        jobs: &mut RawJobs,
        slot_pools: &SlotPools,
        keep: &mut dyn FnMut(JobConfig) -> bool,
    ) {
        let source = self.reading.source;
        for (index, (start, text)) in lines(&source.text).enumerate() {
            let here = Here {
                text,
                number: index + 1,
                start,
            };
            match self.line(&here) {
                Err(fault) => self.refuse(&here, fault),
                Ok(Line::Comment) => {}
                Ok(Line::Blank) => self.drop_name(),
                Ok(Line::Name(name)) => {
                    self.drop_name();
                    let at = self.place(&here, &name);
                    self.name = Some((text[name].to_owned(), at));
                }
                Ok(Line::Variable { name, value }) => self.variable(&here, name, value),
                Ok(Line::Entry(entry)) => {
                    if !jobs.has_room(self.reading, &self.place(&here, &(0..text.len()))) {
                        return;
                    }
                    let has_room = match self.job(&here, &entry, jobs, slot_pools) {
                        Ok(job) => job.is_none_or(&mut *keep),
                        Err(fault) => {
                            self.refuse(&here, fault);
                            true
                        }
                    };
                    if !has_room {
                        return;
                    }
                }
            }
        }
        self.drop_name();
        self.tell_zone();
    }

    fn line(&self, here: &Here<'_>) -> Result<Line, LineFault> {
        let text = here.text;
        let fault = |at, message: &str, help| LineFault {
            code: "crontab/text",
            at,
            message: message.to_owned(),
            help,
        };
        let line = if text.len() > LINE_BYTES_MAX {
            let message = "the line is longer than 128 KiB, which no command can be";
            return Err(fault(0..0, message, None));
        } else {
            read_line(text, self.has_user_column)
        };
        if matches!(line, Ok(Line::Comment | Line::Blank)) {
            return line;
        }
        if let Some(found) = text.find('\0') {
            return Err(fault(found..found + 1, "the line contains a NUL character", None));
        }
        if self.reading.source.is_damaged
            && let Some(found) = text.find('\u{fffd}')
        {
            let message = "the line is not UTF-8 text here";
            return Err(fault(found..found + 3, message, Some("save the file as UTF-8")));
        }
        line
    }

    fn place(&self, here: &Here<'_>, range: &Range<usize>) -> Place {
        let before = here.text.get(..range.start).unwrap_or_default();
        Place {
            file: self.reading.source.name.clone(),
            line: here.number,
            column: before.chars().count() + 1,
            span: here.start + range.start..here.start + range.end,
        }
    }

    fn refuse(&mut self, here: &Here<'_>, fault: LineFault) {
        // A name of a line that does not run is not a name without a line; a variable stands between the two.
        if !matches!(fault.code, "crontab/variable" | "crontab/time-zone") {
            self.name = None;
        }
        let at = self.place(here, &fault.at);
        let found = Fault::error(fault.code, &at, fault.message);
        self.reading
            .report(found.with_help_if(fault.help.map(str::to_owned)));
    }

    fn drop_name(&mut self) {
        if let Some((name, at)) = self.name.take() {
            let message = format!("no line stands below the name `{}`", shown(&name));
            self.reading
                .report(Fault::warning("lint/crontab-name", &at, message));
        }
    }

    fn variable(&mut self, here: &Here<'_>, name: Range<usize>, value: Range<usize>) {
        let (key, text) = (&here.text[name.clone()], &here.text[value.clone()]);
        let fault = |at: Range<usize>, message: String, help| LineFault {
            code: "crontab/variable",
            at,
            message,
            help,
        };
        if !is_environment_key(key) {
            let message = format!("the variable name '{}' is invalid", shown(key));
            self.refuse(here, fault(name, message, None));
            return;
        }
        match key {
            "CRON_TZ" => {
                self.zone(here, text, value);
                return;
            }
            "SHELL" | "HOME" => {
                let path = PathBuf::from(text);
                let is_good = path.is_absolute();
                let setting = if is_good {
                    Setting::Set(path)
                } else {
                    Setting::Faulty
                };
                if key == "SHELL" {
                    self.settings.shell = setting;
                } else {
                    self.settings.home = setting;
                }
                if !is_good {
                    let message = format!("{key} must be an absolute path; the lines below it do not run");
                    self.refuse(here, fault(value, message, None));
                    return;
                }
            }
            _ => self.remark(here, key, text, &name),
        }
        if !self.settings.set(key, text) {
            let message = "a table may have at most 250 variables".to_owned();
            self.refuse(here, fault(name, message, None));
        }
    }

    /// Variables that cron or people give a meaning which is not kept here.
    fn remark(&mut self, here: &Here<'_>, key: &str, value: &str, name: &Range<usize>) {
        let at = self.place(here, name);
        let found = match key {
            "MAILTO" => {
                self.settings.mail_to = Some(value.to_owned());
                let message = "no mail is sent: output is kept with each run, and MAILTO as a label";
                Fault::warning("lint/crontab-mailto", &at, message)
            }
            "RANDOM_DELAY" => {
                let message = "RANDOM_DELAY delays nothing here";
                Fault::warning("lint/crontab-delay", &at, message)
            }
            "TZ" => {
                let message = "TZ reaches the commands only; CRON_TZ sets the zone of the schedules";
                Fault::note("lint/crontab-tz", &at, message)
            }
            _ => return,
        };
        self.reading.report(found);
    }

    fn zone(&mut self, here: &Here<'_>, zone: &str, at: Range<usize>) {
        if self.schedules.knows_zone(zone) {
            self.settings.zone = Setting::Set(zone.to_owned());
            return;
        }
        self.settings.zone = Setting::Faulty;
        let fault = LineFault {
            code: "crontab/time-zone",
            at,
            message: format!(
                "unknown time zone '{}'; the lines below it are not scheduled",
                shown(zone)
            ),
            help: None,
        };
        self.refuse(here, fault);
    }

    /// None for a line that must not run and whose reason was reported above it.
    fn job(
        &mut self,
        here: &Here<'_>,
        entry: &Entry,
        jobs: &mut RawJobs,
        slot_pools: &SlotPools,
    ) -> Result<Option<JobConfig>, LineFault> {
        let given = self.name.as_ref().map(|(name, _)| name.clone());
        let name = given.unwrap_or_else(|| format!("{}-{}", self.stem, here.number));
        let (timezone, timezone_from) = match self.timezone() {
            Some((zone, from)) => (Some(zone), Some(from)),
            None => (None, None),
        };
        self.check_schedule(here, entry, &name, timezone.as_deref())?;
        let command = self.command(here, entry)?;
        if timezone.is_none() || !self.settings.are_sound() {
            self.name = None;
            return Ok(None);
        }
        let at = self.place(here, &(entry.schedule.start..entry.command.end));
        let name_at = self.name.take().map_or_else(|| at.clone(), |(_, at)| at);
        if let Err(fault) = jobs.names.take(Owner::Job, &name, &name_at) {
            let help = "a comment `# name: x` above a line gives it a name of its own";
            let code = "crontab/name";
            self.reading.report(Fault { code, ..fault }.with_help(help));
            return Ok(None);
        }
        let fields: Vec<&str> = here.text[entry.schedule.clone()].split_whitespace().collect();
        let own = JobLayer {
            timezone,
            day_match: both_days(&fields).then_some(DayMatch::Or),
            shell: self.settings.shell.value().cloned(),
            environment: self.settings.variables.clone(),
            // Where cron starts a command; what it is for is asked at each launch.
            working_directory: Some(
                self.settings
                    .home
                    .value()
                    .map_or_else(|| "~".into(), Clone::clone),
            ),
            user: entry.user.as_ref().map(|user| here.text[user.clone()].to_owned()),
            ..JobLayer::default()
        };
        let schedule = RawSchedule::of_text(fields.join(" "), &self.place(here, &entry.schedule));
        let raw = RawJob::of_line(self.file, name, at, CommandConfig::Shell(command), schedule, own);
        let mut job = raw.assemble(self.reading, self.schedules, slot_pools);
        if let Some(job) = &mut job {
            job.timezone_from = timezone_from;
            let mail_to = self.settings.mail_to.as_ref().map(|value| Label {
                key: "mailto".to_owned(),
                value: value.clone(),
            });
            job.labels.extend(mail_to);
        }
        Ok(job)
    }

    /// The zone for a line here, and what said so. None has been reported.
    fn timezone(&mut self) -> Option<(String, String)> {
        match &self.settings.zone {
            Setting::Set(zone) => return Some((zone.clone(), "CRON_TZ".to_owned())),
            Setting::Faulty => return None,
            Setting::Unset => {}
        }
        if let HostAnswer::NotAsked = self.host {
            self.host = self.ask_host();
        }
        match &self.host {
            HostAnswer::Zone(zone) => Some((zone.name.clone(), zone.from.to_owned())),
            HostAnswer::NotAsked | HostAnswer::Nothing => None,
        }
    }

    fn ask_host(&mut self) -> HostAnswer {
        let message = match self.schedules.host_zone() {
            Ok(zone) if self.schedules.knows_zone(&zone.name) => return HostAnswer::Zone(zone),
            Ok(zone) => format!(
                "the zone of this machine, '{}' (from {}), is not known by that name",
                shown(&zone.name),
                zone.from
            ),
            Err(reason) => format!("the zone of this machine is not known: {reason}"),
        };
        let place = Place::whole(&self.reading.source.name);
        let help = "set CRON_TZ at the top of the file; until then its lines are not scheduled";
        self.reading
            .report(Fault::error("crontab/time-zone", &place, message).with_help(help));
        HostAnswer::Nothing
    }

    fn tell_zone(&mut self) {
        if let HostAnswer::Zone(zone) = &self.host {
            let message = format!(
                "times are in {}, the zone of this machine (from {})",
                zone.name, zone.from
            );
            let place = Place::whole(&self.reading.source.name);
            self.reading
                .report(Fault::note("lint/crontab-zone", &place, message));
        }
    }

    fn check_schedule(
        &self,
        here: &Here<'_>,
        entry: &Entry,
        name: &str,
        timezone: Option<&str>,
    ) -> Result<(), LineFault> {
        let text = &here.text[entry.schedule.clone()];
        if text.starts_with('@') {
            check_nickname(text, &entry.schedule)?;
        }
        let Err(found) = self.schedules.check(name, text, false, timezone) else {
            return Ok(());
        };
        Err(LineFault {
            code: "crontab/schedule",
            at: range_of(text, entry.schedule.start, &found),
            help: self.schedule_help(here, entry, &found),
            message: found.message,
        })
    }

    fn schedule_help(&self, here: &Here<'_>, entry: &Entry, found: &ScheduleFault) -> Option<&'static str> {
        let text = &here.text[entry.schedule.clone()];
        if entry.fields < 5 {
            return Some("a line has five fields and then its command");
        }
        let last = text.split_whitespace().last().unwrap_or_default();
        let is_last = found
            .column
            .is_some_and(|column| column >= text.chars().count() - last.chars().count());
        if is_last && last.contains('/') && !last.starts_with('*') {
            return Some("are there only four fields before the command?");
        }
        let next = word(here.text, entry.schedule.end).map(|range| &here.text[range]);
        next.filter(|word| self.schedules.looks_like_field(word))
            .map(|_| SIX_FIELDS)
    }

    fn command(&mut self, here: &Here<'_>, entry: &Entry) -> Result<String, LineFault> {
        let written = &here.text[entry.command.clone()];
        let fault = |at: Range<usize>, message: &str, help| LineFault {
            code: "crontab/command",
            at,
            message: message.to_owned(),
            help,
        };
        if written.is_empty() {
            let end = here.text.trim_end().len();
            let (message, help) = match (self.has_user_column, &entry.user) {
                (false, _) => ("the command is missing", None),
                (true, None) => ("the user and the command are missing", None),
                (true, Some(_)) => (
                    "the command is missing after the user",
                    Some("the sixth column of this file names the user"),
                ),
            };
            return Err(fault(end..end, message, help));
        }
        let first = word(here.text, entry.command.start).unwrap_or(entry.command.clone());
        let head = &here.text[first.clone()];
        if head.starts_with('*') || head == "?" {
            let message = "second: 6 fields need seconds: true, and a crontab line has five";
            let at = entry.schedule.start..first.end;
            let help = "leave the first field out, or write the job in YAML";
            return Err(fault(at, message, Some(help)));
        }
        if head == "root" && !self.has_user_column {
            let message = "the command begins with `root`, as if the line had a column for the user";
            let help = "name the file under `crontabs` as {path: …, user: true}";
            let at = self.place(here, &first);
            self.reading
                .report(Fault::warning("lint/crontab-user", &at, message).with_help(help));
        }
        unescaped(written).map_err(|index| {
            let at = entry.command.start + index;
            LineFault {
                code: "crontab/percent",
                at: at..at + 1,
                message: "a `%` ends the command, and what follows would be its standard input".to_owned(),
                help: Some("write \\% for a percent sign"),
            }
        })
    }
}

/// Case counts in cron, and `@every` is not known there.
fn check_nickname(text: &str, at: &Range<usize>) -> Result<(), LineFault> {
    if NICKNAMES.contains(&text) {
        return Ok(());
    }
    let is_every = text == "@every";
    let nearest = nearest(text, NICKNAMES.into_iter());
    let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
    Err(LineFault {
        code: "crontab/schedule",
        at: at.clone(),
        message: format!(
            "unknown nickname `{}`{}",
            shown(text),
            if is_every { "" } else { &hint }
        ),
        help: is_every.then_some("a crontab has no @every; write the job in YAML"),
    })
}

/// Both day fields are restricted: then either is enough, and the choice was the crontab's.
fn both_days(fields: &[&str]) -> bool {
    let is_open = |field: &str| field.starts_with('*') || field == "?";
    matches!(fields, [_, _, day, _, weekday] if !is_open(day) && !is_open(weekday))
}

/// Bytes of the line for what is wrong in a schedule that begins at `start`.
fn range_of(text: &str, start: usize, found: &ScheduleFault) -> Range<usize> {
    let byte_of = |count: usize| {
        text.char_indices()
            .nth(count)
            .map_or(text.len(), |(byte, _)| byte)
    };
    match found.column {
        Some(column) => {
            let end = byte_of(column.saturating_add(found.length));
            start + byte_of(column)..start + end
        }
        None => start..start + text.len(),
    }
}
