//! Where the configuration is looked for. First hit wins; places are never merged.

use std::path::{Path, PathBuf};

use super::fault::{Fault, Place};

/// What decides the search, gathered by the caller; empty variables count as unset.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// `--config PATH`.
    pub flag: Option<PathBuf>,
    /// `$DUCTOR_CONFIG`.
    pub variable: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`.
    pub xdg_config_home: Option<PathBuf>,
    /// `$HOME`, for the default of the former.
    pub home: Option<PathBuf>,
}

impl Search {
    /// The configuration to use. A place that was named is taken as it is: if it cannot be read,
    /// reading it fails, and nothing falls through to the next place.
    pub fn find(&self, exists: &dyn Fn(&Path) -> bool) -> Result<PathBuf, Box<Fault>> {
        if let Some(named) = given(self.flag.as_ref()).or_else(|| given(self.variable.as_ref())) {
            return Ok(named.clone());
        }
        let places = self.places();
        if let Some(found) = places.iter().find(|path| exists(path)) {
            return Ok(found.clone());
        }
        let looked: Vec<String> = places
            .iter()
            .map(|path| format!("\n  {}", path.display()))
            .collect();
        let fault = Fault::error(
            "config/not-found",
            &Place::whole("ductor.yaml"),
            format!(
                "no configuration file; looked for (after --config and $DUCTOR_CONFIG):{}",
                looked.concat()
            ),
        )
        .with_help("`ductor init` writes a first one; or name one with --config PATH");
        Err(Box::new(fault))
    }

    fn places(&self) -> Vec<PathBuf> {
        let own = given(self.xdg_config_home.as_ref())
            // The XDG rules say that a relative value is to be ignored.
            .filter(|path| path.is_absolute())
            .cloned()
            .or_else(|| given(self.home.as_ref()).map(|home| home.join(".config")));
        let mut places = vec![PathBuf::from("ductor.yaml"), PathBuf::from("config/ductor.yaml")];
        places.extend(own.map(|folder| folder.join("ductor/ductor.yaml")));
        places.push(PathBuf::from("/etc/ductor/ductor.yaml"));
        places
    }
}

fn given(path: Option<&PathBuf>) -> Option<&PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_hit_wins() {
        let search = |flag: &str, variable: &str, xdg: &str| Search {
            flag: Some(flag.into()),
            variable: Some(variable.into()),
            xdg_config_home: Some(xdg.into()),
            home: Some("/var/home/ann".into()),
        };
        let here: &[&str] = &["ductor.yaml", "config/ductor.yaml", "/etc/ductor/ductor.yaml"];
        for (search, there, expected) in [
            (search("a.yaml", "b.yaml", ""), here, "a.yaml"),
            (search("", "b.yaml", ""), here, "b.yaml"),
            (search("", "", ""), here, "ductor.yaml"),
            (search("", "", ""), &here[1..], "config/ductor.yaml"),
            (search("", "", ""), &here[2..], "/etc/ductor/ductor.yaml"),
            (
                search("", "", ""),
                &["/var/home/ann/.config/ductor/ductor.yaml"],
                "/var/home/ann/.config/ductor/ductor.yaml",
            ),
            (
                search("", "", "/x"),
                &["/x/ductor/ductor.yaml"],
                "/x/ductor/ductor.yaml",
            ),
        ] {
            let exists = |path: &Path| there.iter().any(|name| Path::new(name) == path);
            assert_eq!(search.find(&exists).unwrap(), PathBuf::from(expected));
        }
    }

    #[test]
    fn nothing_found_says_where_it_looked() {
        let search = Search {
            home: Some("/var/home/ann".into()),
            ..Search::default()
        };
        let fault = search.find(&|_| false).unwrap_err();
        for place in [
            "\n  ductor.yaml",
            "\n  config/ductor.yaml",
            "/var/home/ann/.config/ductor/ductor.yaml",
            "/etc/ductor/ductor.yaml",
        ] {
            assert!(fault.message.contains(place), "{}", fault.message);
        }
        assert!(fault.help.unwrap().contains("--config PATH"));
    }
}
