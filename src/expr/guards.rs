//! Functions that pay before they work. Their names begin with `@`, which no author can write; `rewrite` puts them in.
#![expect(
    clippy::needless_pass_by_value,
    reason = "the interpreter hands the arguments of a function over as a vector"
)]

use cel_interpreter::common::functions::Function;
use cel_interpreter::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelOptional, CelString, CelTimestamp, CelUInt,
    DYN_TYPE,
};
use cel_interpreter::common::value::{CowVal, Val};
use cel_interpreter::{DeclarationError, Env, ExecutionError};

use super::fault::letter_start;
use super::limits::{MATCHED_BYTES_MAX, NODE_WORK};
use super::meter;
use super::scope::leave;

type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// Pays for a copy of its argument.
pub(super) const COPIED: &str = "@copied";
/// Pays for going through its argument, texts included.
pub(super) const READ: &str = "@read";
/// Pays for a text; lists are handed on.
pub(super) const TEXTS: &str = "@texts";
/// `(x, n)`: pays for going through x n times.
pub(super) const TIMES: &str = "@times";
/// Pays for comparing each element with each other.
pub(super) const PAIRS: &str = "@pairs";
/// Pays for what a format text may become.
pub(super) const FORMAT: &str = "@format";
/// `(range, nodes)`: pays for a loop, whose body has so many nodes.
pub(super) const LOOP: &str = "@loop";
/// `(element, list)`.
pub(super) const WITHIN: &str = "@within";
/// `(holder, key)`: `holder.?key` and `holder[?key]`.
pub(super) const OPTIONAL_AT: &str = "@optional_at";
/// Pays for the value of an optional that is about to be taken out of it.
pub(super) const OPENED: &str = "@opened";
/// A key that is not known before.
pub(super) const KEY: &str = "@key";
/// `(text, number of the pattern)`.
pub(super) const MATCHES: &str = "@matches";

/// Puts down the value of the whole expression.
pub(super) const GIVE: &str = "@give";

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let declared: &[(&str, usize, Function)] = &[
        (COPIED, 1, copied),
        (READ, 1, read),
        (TEXTS, 1, texts),
        (TIMES, 2, times),
        (PAIRS, 1, pairs),
        (FORMAT, 1, format),
        (LOOP, 2, over),
        (WITHIN, 2, within),
        (OPTIONAL_AT, 2, optional_at),
        (OPENED, 1, opened),
        (KEY, 1, key),
        (MATCHES, 2, matches),
        (GIVE, 1, give),
        ("@indexOf", 2, index_of),
        ("@indexOf", 3, index_of),
        ("@lastIndexOf", 2, last_index_of),
        ("@lastIndexOf", 3, last_index_of),
        ("@join", 1, join),
        ("@join", 2, join),
        ("@replace", 3, replace),
        ("@replace", 4, replace),
        ("@split", 2, split),
        ("@split", 3, split),
        ("@range", 1, range),
        ("@getMilliseconds", 1, milliseconds),
        ("@getMilliseconds", 2, milliseconds),
    ];
    for (name, arguments, function) in declared {
        let id = format!("{name}/{arguments}");
        env.add_overload(name, &id, (0..*arguments).map(|_| DYN_TYPE).collect(), *function)?;
    }
    Ok(())
}

/// Whether texts that are only borrowed count: they do when they are read, not when they are copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Weighing {
    Copy,
    Read,
}

/// Units of work of a value, at most a little more than `enough`.
pub(super) fn weight(value: &dyn Val, weighing: Weighing, enough: u64) -> u64 {
    let mut sum = NODE_WORK;
    if let Some(text) = value.downcast_ref::<CelString>() {
        if weighing == Weighing::Read || text.as_borrowed().is_none() {
            sum += text.len() as u64;
        }
    } else if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        sum += bytes.inner().len() as u64;
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        for element in list.inner() {
            if sum > enough {
                break;
            }
            sum += weight(element.as_ref(), weighing, enough - sum);
        }
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        for (key, element) in map.inner() {
            sum += weight(key.inner(), weighing, 0);
            if sum > enough {
                break;
            }
            sum += weight(element.as_ref(), weighing, enough - sum);
        }
    } else if let Some(optional) = value.downcast_ref::<CelOptional>()
        && let Some(inner) = optional.option()
    {
        sum += weight(inner, weighing, enough);
    }
    sum
}

fn pay_for(value: &dyn Val, weighing: Weighing, times: u64) -> Result<(), ExecutionError> {
    meter::pay(weight(value, weighing, meter::left()).saturating_mul(times))
}

fn only<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let count = arguments.len();
    match arguments.pop() {
        Some(value) if count == 1 => Ok(value),
        _ => Err(ExecutionError::invalid_argument_count(1, count)),
    }
}

fn two<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<[CowVal<'b, 'v>; 2], ExecutionError> {
    let count = arguments.len();
    <[CowVal; 2]>::try_from(arguments).map_err(|_| ExecutionError::invalid_argument_count(2, count))
}

fn copied<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = only(arguments)?;
    pay_for(value.as_ref(), Weighing::Copy, 1)?;
    Ok(value)
}

fn read<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = only(arguments)?;
    pay_for(value.as_ref(), Weighing::Read, 1)?;
    Ok(value)
}

fn texts<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = only(arguments)?;
    if value.downcast_ref::<CelList>().is_none() && value.downcast_ref::<CelMap>().is_none() {
        pay_for(value.as_ref(), Weighing::Read, 1)?;
    }
    Ok(value)
}

fn times<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let [value, times] = two(arguments)?;
    pay_for(value.as_ref(), Weighing::Read, count_of(times.as_ref()))?;
    Ok(value)
}

fn pairs<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = only(arguments)?;
    let elements = size_of(value.as_ref());
    let weight = weight(value.as_ref(), Weighing::Read, meter::left());
    // A comparison of two numbers takes a tenth of what a node takes; half of the pairs are compared.
    meter::pay(weight.saturating_add(elements.saturating_mul(weight) / 20))?;
    Ok(value)
}

fn format<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = only(arguments)?;
    pay_for(value.as_ref(), Weighing::Read, 80)?;
    Ok(value)
}

fn over<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let [range, nodes] = two(arguments)?;
    let elements = size_of(range.as_ref());
    meter::pay_loop(elements)?;
    let body = count_of(nodes.as_ref()).saturating_mul(NODE_WORK);
    meter::pay(elements.saturating_mul(body))?;
    pay_for(range.as_ref(), Weighing::Copy, 1)?;
    let Some(map) = range.downcast_ref::<CelMap>() else {
        return Ok(range);
    };
    // The interpreter goes over a map in an order that differs from run to run; ours is sorted.
    let mut keys: Vec<_> = map.inner().keys().cloned().collect();
    keys.sort_unstable();
    let keys: Vec<Box<dyn Val + 'v>> = keys.iter().map(|key| key.inner().clone_as_boxed()).collect();
    Ok(CowVal::owned(CelList::from(keys)))
}

fn within<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let [element, container] = two(arguments)?;
    let mut comparisons = 1;
    if let Some(list) = container.downcast_ref::<CelList>() {
        comparisons = list.inner().len() as u64;
    }
    // A text is compared only with texts of its length: half of its bytes is generous.
    pay_for(element.as_ref(), Weighing::Read, comparisons.div_ceil(4))?;
    let refuse = || no_overload("in", &[&element, &container]);
    let container_of = container.as_container().ok_or_else(refuse)?;
    let found = container_of.contains(element.as_ref()).map_err(|_| refuse())?;
    Ok(CowVal::owned(CelBool::from(found)))
}

fn optional_at<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let [holder, key] = two(arguments)?;
    let inner: Option<&(dyn Val + 'v)> = match holder.downcast_ref::<CelOptional>() {
        Some(optional) => optional.option(),
        None => Some(holder.as_ref()),
    };
    let found = inner
        .and_then(|inner| inner.as_indexer())
        .and_then(|indexer| indexer.get(key.as_ref()).ok());
    let Some(found) = found else {
        return Ok(CowVal::owned(CelOptional::none()));
    };
    pay_for(found.as_ref(), Weighing::Copy, 1)?;
    Ok(CowVal::owned(CelOptional::of(found.into_owned())))
}

fn opened<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = only(arguments)?;
    if value.downcast_ref::<CelOptional>().is_some() {
        pay_for(value.as_ref(), Weighing::Copy, 1)?;
    }
    Ok(value)
}

fn key<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let key = only(arguments)?;
    pay_for(key.as_ref(), Weighing::Read, 1)?;
    // The interpreter would copy the whole list into the error.
    if key
        .downcast_ref::<CelDouble>()
        .is_some_and(|number| number.inner().fract() != 0.0)
    {
        return Err(ExecutionError::function_error(
            "[]",
            "a list has no element between two others",
        ));
    }
    Ok(key)
}

fn matches<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let [text, number] = two(arguments)?;
    let index = usize::try_from(count_of(number.as_ref())).unwrap_or(usize::MAX);
    let pattern =
        meter::pattern(index).ok_or_else(|| ExecutionError::function_error("matches", "no such pattern"))?;
    let Some(text) = text.downcast_ref::<CelString>() else {
        return Err(no_overload("matches", &[&text]));
    };
    if text.len() > MATCHED_BYTES_MAX {
        let why = format!(
            "the text has {} bytes, and {MATCHED_BYTES_MAX} are allowed",
            text.len()
        );
        return Err(ExecutionError::function_error("matches", why));
    }
    meter::pay(NODE_WORK + 16 * text.len() as u64)?;
    Ok(CowVal::owned(CelBool::from(pattern.is_match(text.inner()))))
}

fn give<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let value = only(arguments)?;
    meter::give(leave(value.as_ref(), 1));
    Ok(CowVal::owned(CelBool::from(true)))
}

fn index_of<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (text, wanted) = (
        text_at("indexOf", &arguments, 0)?,
        text_at("indexOf", &arguments, 1)?,
    );
    meter::pay(NODE_WORK + 4 * (text.len() + wanted.len()) as u64)?;
    let from = match arguments.get(2) {
        None => 0,
        Some(offset) => letters_within(text, offset.as_ref(), "indexOf")?,
    };
    let start = byte_of_letter(text, from);
    let found = text[start..]
        .find(wanted)
        .map(|at| from + text[start..start + at].chars().count());
    Ok(CowVal::owned(CelInt::from(signed(found))))
}

fn last_index_of<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (text, wanted) = (
        text_at("lastIndexOf", &arguments, 0)?,
        text_at("lastIndexOf", &arguments, 1)?,
    );
    meter::pay(NODE_WORK + 4 * (text.len() + wanted.len()) as u64)?;
    let end = match arguments.get(2) {
        None => text.len(),
        Some(offset) => {
            let last = byte_of_letter(text, letters_within(text, offset.as_ref(), "lastIndexOf")?);
            letter_start(text, last + wanted.len())
        }
    };
    let found = text[..end].rfind(wanted).map(|at| text[..at].chars().count());
    Ok(CowVal::owned(CelInt::from(signed(found))))
}

fn join<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let between = match arguments.get(1) {
        None => "",
        Some(_) => text_at("join", &arguments, 1)?,
    };
    let Some(list) = arguments.first().and_then(|list| list.downcast_ref::<CelList>()) else {
        return Err(no_overload("join", &arguments.iter().collect::<Vec<_>>()));
    };
    pay_for(list, Weighing::Read, 1)?;
    meter::pay((between.len() as u64).saturating_mul(list.inner().len() as u64))?;
    let mut parts = Vec::with_capacity(list.inner().len());
    for element in list.inner() {
        match element.downcast_ref::<CelString>() {
            Some(part) => parts.push(part.inner()),
            None => {
                let why = format!(
                    "joins texts, and the list has an element of type {}",
                    element.get_type().name()
                );
                return Err(ExecutionError::function_error("join", why));
            }
        }
    }
    Ok(CowVal::owned(CelString::from(parts.join(between))))
}

fn replace<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let text = text_at("replace", &arguments, 0)?;
    let (from, to) = (
        text_at("replace", &arguments, 1)?,
        text_at("replace", &arguments, 2)?,
    );
    let most = match arguments.get(3) {
        None => usize::MAX,
        Some(most) => usize::try_from(whole_of("replace", most.as_ref())?).unwrap_or(usize::MAX),
    };
    meter::pay(NODE_WORK + 2 * text.len() as u64)?;
    let found = text.matches(from).take(most).count() as u64;
    meter::pay(found.saturating_mul(to.len() as u64))?;
    Ok(CowVal::owned(CelString::from(text.replacen(from, to, most))))
}

fn split<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (text, between) = (text_at("split", &arguments, 0)?, text_at("split", &arguments, 1)?);
    let most = match arguments.get(2) {
        None => usize::MAX,
        Some(most) => usize::try_from(whole_of("split", most.as_ref())?).unwrap_or(usize::MAX),
    };
    meter::pay(NODE_WORK + 2 * text.len() as u64)?;
    let pieces: Box<dyn Iterator<Item = &str>> = if between.is_empty() {
        letters(text, most)
    } else {
        Box::new(text.splitn(most, between))
    };
    let mut parts: Vec<Box<dyn Val + 'v>> = Vec::new();
    for piece in pieces {
        meter::pay(2 * NODE_WORK)?;
        parts.push(Box::new(CelString::from(piece.to_owned())));
    }
    Ok(CowVal::owned(CelList::from(parts)))
}

/// Letter by letter; the last of at most `most` pieces is what remains.
fn letters(text: &str, most: usize) -> Box<dyn Iterator<Item = &str> + '_> {
    let mut rest = text;
    let mut given = 0;
    Box::new(std::iter::from_fn(move || {
        let first = rest.chars().next().filter(|_| given < most)?;
        given += 1;
        let end = if given == most {
            rest.len()
        } else {
            first.len_utf8()
        };
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        Some(piece)
    }))
}

fn range<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let count = whole_of("lists.range", only(arguments)?.as_ref())?;
    let elements = u64::try_from(count)
        .map_err(|_| ExecutionError::function_error("lists.range", "a length is not negative"))?;
    if elements > meter::list_max() {
        let why = format!("{elements} elements, and {} are allowed", meter::list_max());
        return Err(ExecutionError::function_error("lists.range", why));
    }
    meter::pay(NODE_WORK * (elements + 1))?;
    let list: Vec<Box<dyn Val + 'v>> = (0..count)
        .map(|number| Box::new(CelInt::from(number)) as Box<dyn Val>)
        .collect();
    Ok(CowVal::owned(CelList::from(list)))
}

/// Of a timestamp only: what it is of a duration differs between the implementations of the language.
fn milliseconds<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let refuse = || no_overload("getMilliseconds", &arguments.iter().collect::<Vec<_>>());
    let instant = arguments
        .first()
        .and_then(|instant| instant.downcast_ref::<CelTimestamp>());
    let zone_fits = arguments
        .get(1)
        .is_none_or(|zone| zone.downcast_ref::<CelString>().is_some());
    let instant = instant.filter(|_| zone_fits).ok_or_else(refuse)?;
    // All offsets are whole minutes, so a zone changes nothing here.
    let within_second = i64::from(instant.inner().timestamp_subsec_millis());
    Ok(CowVal::owned(CelInt::from(within_second)))
}

fn size_of(value: &dyn Val) -> u64 {
    value
        .as_sizer()
        .map_or(0, |sizer| u64::try_from(*sizer.size().inner()).unwrap_or(0))
}

fn count_of(value: &dyn Val) -> u64 {
    value
        .downcast_ref::<CelInt>()
        .map_or(1, |count| u64::try_from(*count.inner()).unwrap_or(1))
}

fn whole_of(function: &str, value: &dyn Val) -> Result<i64, ExecutionError> {
    let whole = value.downcast_ref::<CelInt>().map(|number| *number.inner());
    let unsigned = || {
        value
            .downcast_ref::<CelUInt>()
            .and_then(|number| i64::try_from(*number.inner()).ok())
    };
    whole
        .or_else(unsigned)
        .ok_or_else(|| ExecutionError::no_such_overload(function, vec![value.get_type().name().to_owned()]))
}

fn text_at<'x>(
    function: &str,
    arguments: &'x [CowVal<'_, '_>],
    index: usize,
) -> Result<&'x str, ExecutionError> {
    let argument = arguments
        .get(index)
        .and_then(|argument| argument.downcast_ref::<CelString>());
    argument
        .map(CelString::inner)
        .ok_or_else(|| no_overload(function, &arguments.iter().collect::<Vec<_>>()))
}

fn no_overload(function: &str, arguments: &[&CowVal<'_, '_>]) -> ExecutionError {
    let types = arguments
        .iter()
        .map(|argument| argument.get_type().name().to_owned());
    ExecutionError::no_such_overload(function, types.collect())
}

/// An offset in letters that lies in the text.
fn letters_within(text: &str, offset: &dyn Val, function: &str) -> Result<usize, ExecutionError> {
    let offset = whole_of(function, offset)?;
    usize::try_from(offset)
        .ok()
        .filter(|offset| *offset <= text.chars().count())
        .ok_or_else(|| ExecutionError::function_error(function, format!("the text has no letter {offset}")))
}

fn byte_of_letter(text: &str, letter: usize) -> usize {
    text.char_indices().nth(letter).map_or(text.len(), |(at, _)| at)
}

/// -1 where nothing was found.
fn signed(found: Option<usize>) -> i64 {
    found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
}
