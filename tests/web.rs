//! The rules of `web/`, which no compiler looks at: sizes, what a page may not do under its content policy, that every file
//! is found and every vendored one is what it says. Each checker is pure and has bad samples; a rule fails with every
//! violation as `file:line: why`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

const FILE_LINES_MAX: usize = 299;
const GZIPPED_BYTES_MAX: usize = 240_000;
/// What a browser loads once, each file compressed for itself.
const LOADED_BYTES_MAX: usize = 320_000;

/// What runs code or markup that came as text, or sets a style that the content policy refuses.
const FORBIDDEN: &[&str] = &[
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "dangerouslySetInnerHTML",
    "createContextualFragment",
    "document.write",
    "eval(",
    "new Function",
    "style=\"",
    "javascript:",
    "data:image",
    "WebSocket(",
    "EventSource(",
];

/// Addresses that are no request: a namespace, and the machine itself.
const KNOWN_ADDRESSES: &[&str] = &["http://www.w3.org/", "http://127.0.0.1", "http://localhost"];

/// By path below `web/`.
type Files = BTreeMap<String, Vec<u8>>;

fn web() -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let mut files = Files::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of web/") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(&root)
                    .expect("below web/")
                    .display()
                    .to_string();
                files.insert(name, fs::read(&path).expect("a file of web/"));
            }
        }
    }
    files
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn samples(files: &[(&str, &str)]) -> Files {
    let owned = files.iter();
    owned
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
        .collect()
}

#[track_caller]
fn hold(violations: &[String]) {
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

fn has_extension(path: &str, wanted: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == wanted)
}

fn is_script(path: &str) -> bool {
    has_extension(path, "js")
}

fn is_module(path: &str) -> bool {
    path.starts_with("app/") && is_script(path)
}

fn check_shape(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    for (path, bytes) in files.iter().filter(|(path, _)| !path.starts_with("vendor/")) {
        let lines = text(bytes).lines().count();
        if lines > FILE_LINES_MAX {
            found.push(format!(
                "{path}:{lines}: at most {FILE_LINES_MAX} lines: split it"
            ));
        }
        if is_module(path) && !text(bytes).starts_with("// ") {
            found.push(format!("{path}:1: a module begins with `// ` and what it is for"));
        }
    }
    found
}

/// Not as the end of a longer word: `retrieval(` is no `eval(`.
fn has_word(line: &str, word: &str) -> bool {
    let mut found = line.match_indices(word);
    found.any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric))
}

fn check_forbidden(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    for (path, bytes) in files.iter().filter(|(path, _)| is_module(path)) {
        for (number, line) in (1..).zip(text(bytes).lines()) {
            let words = FORBIDDEN.iter().filter(|word| has_word(line, word));
            found.extend(words.map(|word| format!("{path}:{number}: `{word}` is not for this page")));
        }
    }
    found
}

fn check_addresses(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    let ours = |path: &str| !path.starts_with("vendor/");
    for (path, bytes) in files.iter().filter(|(path, _)| ours(path)) {
        for (number, line) in (1..).zip(text(bytes).lines()) {
            let starts = ["http://", "https://", "url(//", "src=\"//", "href=\"//"];
            for (at, _) in starts.iter().flat_map(|start| line.match_indices(start)) {
                if !KNOWN_ADDRESSES.iter().any(|known| line[at..].starts_with(known)) {
                    found.push(format!("{path}:{number}: an address of another host"));
                }
            }
            if has_extension(path, "css") && (line.contains("@import") || line.contains("url(data:")) {
                found.push(format!(
                    "{path}:{number}: styles are linked by index.html, and draw nothing from `data:`"
                ));
            }
        }
    }
    found
}

/// The values of an attribute in markup, `name="…"`.
fn attributes<'a>(markup: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    let after = markup
        .match_indices(&start)
        .map(|(at, _)| &markup[at + start.len()..]);
    after.filter_map(|rest| rest.split('"').next()).collect()
}

fn check_page(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(page.lines()) {
        let mut say = |why: &str| found.push(format!("index.html:{number}: {why}"));
        if line.contains("<script") && !(line.contains(" src=\"/web/") && line.contains("></script>")) {
            say("a script is a file of /web/");
        }
        if line.contains("<style") || line.contains(" style=") {
            say("styles are files");
        }
        let is_event = |word: &str| {
            let name = word.split('=').next().unwrap_or_default();
            word.contains('=') && name.starts_with("on") && name.bytes().all(|byte| byte.is_ascii_lowercase())
        };
        if line.split([' ', '<', '\t']).any(is_event) {
            say("an event has its listener in a module");
        }
    }
    found
}

/// What a module imports, with the line: `from "…"` of a statement, `import "…"`, and `import("…")`, which may also stand
/// in a comment for a type. Vendored modules are one line, so a statement may begin anywhere in theirs.
fn imports(module: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(module.lines()) {
        let is_statement = ["import", "export", "}"]
            .iter()
            .any(|start| line.trim_start().starts_with(start));
        for start in ["from \"", "from\"", "import \"", "import\"", "import(\""] {
            if !is_statement && start != "import(\"" {
                continue;
            }
            for (at, _) in line.match_indices(start) {
                let rest = &line[at + start.len()..];
                let path = rest.split('"').next().unwrap_or_default();
                if is_specifier(path)
                    && !line[..at].ends_with(|mark: char| mark.is_alphanumeric() || mark == '.')
                {
                    found.push((number, path));
                }
            }
        }
    }
    found
}

fn is_specifier(path: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"@_./-".contains(&byte);
    !path.is_empty() && path.bytes().all(allowed)
}

/// `../lib/x.js` seen from `app/pages/y.js`.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if !path.starts_with("./") && !path.starts_with("../") {
        return None;
    }
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn check_imports(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    for (path, bytes) in files.iter().filter(|(path, _)| is_script(path)) {
        for (number, wanted) in imports(text(bytes)) {
            if !resolve(path, wanted).is_some_and(|file| files.contains_key(&file)) {
                found.push(format!("{path}:{number}: `{wanted}` is no file of web/"));
            }
        }
    }
    found
}

/// Every file is linked by the page, or imported by what is; and what the page names is there.
fn check_reached(files: &Files) -> Vec<String> {
    let page = text(&files["index.html"]);
    let named = [attributes(page, "src"), attributes(page, "href")].concat();
    let mut found = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for address in named {
        match address
            .strip_prefix("/web/")
            .filter(|path| files.contains_key(*path))
        {
            Some(path) => open.push(path.to_owned()),
            None => found.push(format!("index.html:1: `{address}` is no file of web/")),
        }
    }
    let mut reached: BTreeSet<String> = ["index.html", "vendor/VENDOR.md"].map(str::to_owned).into();
    while let Some(path) = open.pop() {
        if is_script(&path) {
            let wanted = imports(text(&files[&path])).into_iter();
            open.extend(
                wanted
                    .filter_map(|(_, wanted)| resolve(&path, wanted))
                    .filter(|file| files.contains_key(file) && !reached.contains(file)),
            );
        }
        reached.insert(path);
    }
    let alone = files.keys().filter(|path| !reached.contains(*path));
    found.extend(alone.map(|path| format!("{path}:1: nothing links or imports it")));
    found
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The rows of VENDOR.md against the files beside it.
fn check_vendor(files: &Files) -> Vec<String> {
    let rows: BTreeMap<&str, &str> = text(&files["vendor/VENDOR.md"])
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.strip_prefix("| ")?.split('|').map(str::trim).collect();
            let hash = *cells.get(6)?;
            (hash.len() == 64).then_some((cells[0], hash))
        })
        .collect();
    let mut found = Vec::new();
    for (path, bytes) in files
        .iter()
        .filter(|(path, _)| path.starts_with("vendor/") && is_script(path))
    {
        let name = path.trim_start_matches("vendor/");
        let hash = hex(&Sha256::digest(bytes));
        match rows.get(name) {
            Some(row) if *row == hash => {}
            Some(_) => found.push(format!("{path}:1: its sha256 is {hash}, VENDOR.md says another")),
            None => found.push(format!("{path}:1: VENDOR.md has no row for it")),
        }
    }
    let gone = rows
        .keys()
        .filter(|name| !files.contains_key(&format!("vendor/{name}")));
    found.extend(gone.map(|name| format!("vendor/VENDOR.md:1: `{name}` is not there")));
    found
}

fn gzipped(bytes: &[u8]) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("into memory");
    encoder.finish().expect("into memory").len()
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    hold(&check_shape(&web()));
    let long = "// x\n".repeat(300);
    let bad = samples(&[
        ("app/a.js", &long),
        ("app/b.js", "import 1\n"),
        ("style/c.css", &long),
    ]);
    assert_eq!(check_shape(&bad).len(), 3);
    let good = samples(&[("app/a.js", &"// x\n".repeat(299)), ("vendor/b.js", &long)]);
    hold(&check_shape(&good));
}

#[test]
fn nothing_runs_text_as_code_or_markup() {
    hold(&check_forbidden(&web()));
    for line in [
        "e.innerHTML = x",
        "x = eval(y)",
        "new Function(y)",
        "html`<b style=\"color:red\">`",
        "<a href=\"javascript:x()\">",
    ] {
        assert_eq!(
            check_forbidden(&samples(&[("app/a.js", line)])).len(),
            1,
            "{line}"
        );
    }
    hold(&check_forbidden(&samples(&[(
        "app/a.js",
        "html`<b style=${{ width }}>`; retrieval(x)",
    )])));
}

#[test]
fn no_other_host_is_named() {
    hold(&check_addresses(&web()));
    for (path, line) in [
        ("app/a.js", "fetch(\"https://cdn.example/x.js\")"),
        ("app/a.js", "// see http://www.w3.example/"),
        ("style/a.css", "@import \"b.css\";"),
        ("style/a.css", "b { background: url(data:image/png;base64,x) }"),
        ("style/a.css", "b { background: url(//cdn.example/x.png) }"),
        ("index.html", "<script src=\"//cdn.example/x.js\"></script>"),
    ] {
        assert_eq!(check_addresses(&samples(&[(path, line)])).len(), 1, "{line}");
    }
    let known = "<svg xmlns=\"http://www.w3.org/2000/svg\">";
    hold(&check_addresses(&samples(&[("icon.svg", known)])));
}

#[test]
fn the_page_holds_neither_script_nor_style() {
    hold(&check_page(text(&web()["index.html"])));
    for line in [
        "<script>x()</script>",
        "<script src=\"/web/x.js\">x()</script>",
        "<script src=\"x.js\"></script>",
        "<style>",
        "<b style=\"x\">",
        "<body onload=\"x()\">",
        "<body\tonclick=x>",
    ] {
        assert_eq!(check_page(line).len(), 1, "{line}");
    }
    hold(&check_page(
        "<meta content=\"on=1\"><a href=\"/once=1\">one=1 On=1</a>",
    ));
}

#[test]
fn every_import_is_a_file() {
    hold(&check_imports(&web()));
    for line in [
        "import { a } from \"./gone.js\";",
        "import \"preact\";",
        "export * from\"../gone.js\"",
        "const x = await import(\"../../../escaped.js\")",
        "/** @type {import(\"../lib/gone.js\").X} */",
    ] {
        let files = samples(&[("app/pages/a.js", line)]);
        assert_eq!(check_imports(&files).len(), 1, "{line}");
    }
    let good = samples(&[
        ("app/pages/a.js", "import {\n  b,\n} from \"../lib/b.js\";"),
        ("app/lib/b.js", "html`<p class=\"from\">far from \"there\"</p>`;"),
    ]);
    hold(&check_imports(&good));
    assert_eq!(imports(text(&good["app/pages/a.js"])), [(3, "../lib/b.js")]);
}

#[test]
fn every_file_is_reached_from_the_page() {
    hold(&check_reached(&web()));
    let page = "<link href=\"/web/style/a.css\"><link href=\"/web/style/gone.css\"><script src=\"/web/app/main.js\">";
    let files = samples(&[
        ("index.html", page),
        ("style/a.css", ""),
        ("style/alone.css", ""),
        ("app/main.js", "import { b } from \"./lib/b.js\";"),
        ("app/lib/b.js", "import \"../main.js\";"),
        ("app/lib/alone.js", "import \"./b.js\";"),
        ("vendor/VENDOR.md", ""),
    ]);
    assert_eq!(
        check_reached(&files),
        [
            "index.html:1: `/web/style/gone.css` is no file of web/",
            "app/lib/alone.js:1: nothing links or imports it",
            "style/alone.css:1: nothing links or imports it",
        ]
    );
}

#[test]
fn vendored_files_are_what_they_say() {
    hold(&check_vendor(&web()));
    let row =
        |name: &str, hash: &str| format!("| {name} | p | 1 | MIT | f | {} | {hash} |\n", "0".repeat(64));
    // The digest of nothing.
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let rows = row("good.js", empty) + &row("changed.js", empty) + &row("gone.js", empty);
    let files = samples(&[
        ("vendor/VENDOR.md", &rows),
        ("vendor/good.js", ""),
        ("vendor/changed.js", "x"),
        ("vendor/unknown.js", ""),
    ]);
    let found = check_vendor(&files);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].starts_with("vendor/changed.js:1: its sha256 is "),
        "{found:?}"
    );
}

/// As one archive, and file by file as a first visit loads them.
#[test]
fn all_of_it_is_small() {
    let files = web();
    let each: usize = files.values().map(|bytes| gzipped(bytes)).sum();
    let whole = gzipped(&files.into_values().flatten().collect::<Vec<u8>>());
    println!("web/ is {whole} bytes gzipped, {each} file by file");
    assert!(
        whole < GZIPPED_BYTES_MAX,
        "{whole} bytes gzipped, at most {GZIPPED_BYTES_MAX}"
    );
    assert!(
        each < LOADED_BYTES_MAX,
        "{each} bytes gzipped file by file, at most {LOADED_BYTES_MAX}"
    );
    // The count is of compressed bytes.
    assert!(gzipped(&[b'a'; 10_000]) < 100);
}

/// An empty list would let every rule above pass.
#[test]
fn the_rules_see_the_files() {
    let files = web();
    for path in [
        "index.html",
        "app/main.js",
        "app/lib/dom.js",
        "style/tokens.css",
        "vendor/preact.js",
    ] {
        assert!(files.contains_key(path), "{path}");
    }
}
