//! The layers above the files: variables first, then flags. The caller decides which of the two a
//! value came from; relative paths in them start at the working directory.

use std::path::PathBuf;

use super::fault::{Fault, Place};
use super::model::Config;
use super::sections::{
    FORMAT_RULE, FORMATS, LEVEL_HELP, LEVEL_RULE, LISTEN_HELP, LISTEN_RULE, NODE_NAME_RULE, is_level,
    is_node_name,
};

/// A value and the flag or variable that carried it, which a fault names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    pub origin: &'static str,
    pub value: String,
}

impl Override {
    /// The flag if it is there, else the variable if it is set and not empty.
    pub fn choose(
        flag: (&'static str, Option<String>),
        variable: (&'static str, Option<String>),
    ) -> Option<Self> {
        let (origin, value) = match (flag, variable) {
            ((origin, Some(value)), _) => (origin, value),
            ((_, None), (origin, value)) => (origin, value.filter(|value| !value.is_empty())?),
        };
        Some(Self { origin, value })
    }
}

/// What is laid over the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub listen: Option<Override>,
    pub state_dir: Option<Override>,
    pub node_name: Option<Override>,
    pub log_level: Option<Override>,
    pub log_format: Option<Override>,
}

impl Overrides {
    pub(super) fn apply(&self, config: &mut Config, faults: &mut Vec<Fault>) {
        let mut refuse = |given: &Override, rule: &str, help: Option<&str>| {
            let place = Place::whole(given.origin);
            let fault = Fault::error("config/bad-value", &place, rule);
            faults.push(fault.with_help_if(help.map(str::to_owned)));
        };
        if let Some(given) = &self.listen {
            match given.value.parse() {
                Ok(address) => config.server.listen = address,
                Err(_) => refuse(given, LISTEN_RULE, Some(LISTEN_HELP)),
            }
        }
        if let Some(given) = &self.state_dir {
            if given.value.is_empty() {
                refuse(given, "the state directory is empty", None);
            } else {
                config.state.path = PathBuf::from(&given.value);
            }
        }
        if let Some(given) = &self.node_name {
            if is_node_name(&given.value) {
                config.node.name = Some(given.value.clone());
            } else {
                refuse(given, NODE_NAME_RULE, None);
            }
        }
        if let Some(given) = &self.log_level {
            if is_level(&given.value) {
                config.logging.level.clone_from(&given.value);
            } else {
                refuse(given, LEVEL_RULE, Some(LEVEL_HELP));
            }
        }
        if let Some(given) = &self.log_format {
            match FORMATS.iter().find(|(word, _)| *word == given.value) {
                Some((_, format)) => config.logging.format = *format,
                None => refuse(given, FORMAT_RULE, None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(value: &str) -> Option<Override> {
        Override::choose(("--x", Some(value.to_owned())), ("DUCTOR_X", None))
    }

    #[test]
    fn flags_beat_variables_and_empty_variables_are_unset() {
        let text = |value: &str| Some(value.to_owned());
        for (flag, variable, expected) in [
            (text("f"), text("v"), Some(("--x", "f"))),
            (None, text("v"), Some(("DUCTOR_X", "v"))),
            (None, text(""), None),
            (None, None, None),
        ] {
            let chosen = Override::choose(("--x", flag), ("DUCTOR_X", variable));
            let chosen = chosen
                .as_ref()
                .map(|chosen| (chosen.origin, chosen.value.as_str()));
            assert_eq!(chosen, expected);
        }
    }

    #[test]
    fn applied_or_refused_by_the_rules_of_the_file() {
        let mut config = Config::default();
        let mut faults = Vec::new();
        let good = Overrides {
            listen: given("0.0.0.0:1"),
            state_dir: given("here/state"),
            node_name: given("n1"),
            log_level: given("debug"),
            log_format: given("json"),
        };
        good.apply(&mut config, &mut faults);
        assert!(faults.is_empty());
        assert_eq!(config.server.listen.port(), 1);
        assert_eq!(config.state.path, PathBuf::from("here/state"));
        let bad = Overrides {
            listen: given("nowhere"),
            state_dir: given(""),
            node_name: given("N 1"),
            log_level: given("loud"),
            log_format: given("xml"),
        };
        bad.apply(&mut config, &mut faults);
        assert_eq!(faults.len(), 5);
        assert!(faults.iter().all(|fault| fault.at == Place::whole("--x")));
    }
}
