//! Lists by pages. A cursor is opaque: a place in the order of the keys, and a mark of the list, the tenant, the order and
//! the filter it came from.

use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::Problem;
use super::input;
use super::param::{Kind, Param};
use crate::words::ids::{TenantId, digest_of_parts, hex, of_hex};
use crate::words::limits;

/// What every list is asked with, beside its own filters.
pub(super) const PARAMS: [Param; 3] = [
    Param::query(
        "pagination.page_size",
        Kind::Integer,
        "Items of a page, 1 to 500 (50).",
    ),
    Param::query(
        "pagination.cursor",
        Kind::Text,
        "The `next_cursor` of the page before; only with the same filter and order.",
    ),
    Param::query(
        "order",
        Kind::OneOf(&["asc", "desc"]),
        "`asc` or `desc`: runs come newest first, names from a to z, unless it is given.",
    ),
];
/// The same without the prefix, as people type it.
const SHORT: [&str; 2] = ["page_size", "cursor"];
const MARK_BYTES: usize = 4;

/// One page of a list.
#[derive(Debug, Serialize)]
pub(super) struct Page<T> {
    pub(super) data: Vec<T>,
    pub(super) pagination: Pagination,
}

/// Where a list goes on.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Pagination {
    /// Asks for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) next_cursor: Option<String>,
    /// So many rows were looked at that the page ends early: what was created since then (or, oldest first, before then)
    /// has been looked through. There may be more behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) scanned_to: Option<String>,
}

/// Which page is asked for.
#[derive(Debug, Clone)]
pub(super) struct Paging {
    pub(super) size: usize,
    pub(super) ascending: bool,
    /// The key of the last item of the page before.
    pub(super) after: Option<Vec<u8>>,
    mark: [u8; MARK_BYTES],
}

/// The parameters of a list by their short names, each known.
pub(super) fn query(uri: &Uri, filters: &[Param]) -> Result<Vec<(String, String)>, Problem> {
    let mut known: Vec<&str> = filters.iter().chain(&PARAMS).map(|param| param.name).collect();
    known.extend(SHORT);
    let mut pairs = input::query(uri, &known)?;
    for (name, _) in &mut pairs {
        if let Some(short) = name.strip_prefix("pagination.") {
            *name = short.to_owned();
        }
    }
    Ok(pairs)
}

/// All values of a filter, in order and each once: "or".
pub(super) fn values(pairs: &[(String, String)], name: &str) -> Vec<String> {
    let mut values: Vec<String> = pairs
        .iter()
        .filter(|(found, _)| found == name)
        .map(|(_, value)| value.clone())
        .collect();
    values.sort_unstable();
    values.dedup();
    values
}

impl Paging {
    /// Of a list of the tenant `default`. `list` is the name of the list; `filter` are its filters, each as name and value.
    pub(super) fn of(
        pairs: &[(String, String)],
        list: &str,
        filter: &[(&str, String)],
        ascending: bool,
    ) -> Result<Paging, Problem> {
        Paging::of_tenant(pairs, list, filter, ascending, TenantId::DEFAULT)
    }

    /// The same for a list that each tenant has of its own.
    pub(super) fn of_tenant(
        pairs: &[(String, String)],
        list: &str,
        filter: &[(&str, String)],
        ascending: bool,
        tenant: TenantId,
    ) -> Result<Paging, Problem> {
        let size = input::number(pairs, "page_size", 1, limits::PAGE_MAX)?.unwrap_or(limits::PAGE_DEFAULT);
        let ascending = match input::last(pairs, "order") {
            None => ascending,
            Some("asc") => true,
            Some("desc") => false,
            Some(_) => return Err(Problem::unreadable("`order` must be `asc` or `desc`")),
        };
        let tenant = tenant.0.to_string();
        let mut parts = vec!["cursor", list, &tenant, if ascending { "asc" } else { "desc" }];
        for (name, value) in filter {
            parts.extend([*name, value.as_str()]);
        }
        let mut mark = [0; MARK_BYTES];
        mark.copy_from_slice(&digest_of_parts(&parts)[..MARK_BYTES]);
        let mut paging = Paging {
            size,
            ascending,
            after: None,
            mark,
        };
        paging.after = input::last(pairs, "cursor")
            .map(|cursor| paging.place(cursor))
            .transpose()?;
        Ok(paging)
    }

    fn place(&self, cursor: &str) -> Result<Vec<u8>, Problem> {
        let foreign = || Problem::unreadable("`pagination.cursor` is not one of this list");
        let mut bytes = of_hex(cursor).ok_or_else(foreign)?;
        let Some(end) = bytes.len().checked_sub(MARK_BYTES).filter(|end| *end > 0) else {
            return Err(foreign());
        };
        if bytes.split_off(end) != self.mark {
            return Err(Problem::unreadable(
                "`pagination.cursor` belongs to another filter or order",
            ));
        }
        Ok(bytes)
    }

    /// A page whose last item has this key, if there are more behind it.
    pub(super) fn page<T>(&self, data: Vec<T>, more_after: Option<&[u8]>) -> Page<T> {
        let next_cursor = more_after.map(|key| hex(key) + &hex(&self.mark));
        Page {
            data,
            pagination: Pagination {
                next_cursor,
                scanned_to: None,
            },
        }
    }
}

/// The page of names that are all in memory, in their order; and whether there are more behind it.
pub(super) fn of_names<'a, N: AsRef<str>>(
    names: impl DoubleEndedIterator<Item = &'a N>,
    paging: &Paging,
) -> (Vec<&'a N>, bool) {
    let mut found = all_after(names, paging);
    let more = found.len() > paging.size;
    found.truncate(paging.size);
    (found, more)
}

/// All names behind the cursor, in their order.
pub(super) fn all_after<'a, N: AsRef<str>>(
    names: impl DoubleEndedIterator<Item = &'a N>,
    paging: &Paging,
) -> Vec<&'a N> {
    let after = paging.after.as_deref();
    if paging.ascending {
        names
            .filter(|name| after.is_none_or(|after| name.as_ref().as_bytes() > after))
            .collect()
    } else {
        names
            .rev()
            .filter(|name| after.is_none_or(|after| name.as_ref().as_bytes() < after))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(text: &str, filter: &[(&str, String)]) -> Result<Paging, String> {
        let uri: Uri = format!("/x?{text}").parse().unwrap();
        let pairs = query(&uri, &[]).map_err(|problem| format!("{problem:?}"))?;
        Paging::of(&pairs, "x", filter, true).map_err(|problem| format!("{problem:?}"))
    }

    #[test]
    fn a_cursor_comes_back_only_where_it_belongs() {
        let first = paging("page_size=2", &[]).unwrap();
        let cursor = first
            .page::<u8>(vec![], Some(b"k"))
            .pagination
            .next_cursor
            .unwrap();
        let here = |query: &str, filter: &[(&str, String)]| {
            paging(&format!("{query}&pagination.cursor={cursor}"), filter)
        };
        assert_eq!(here("order=asc", &[]).unwrap().after.as_deref(), Some(&b"k"[..]));
        assert!(
            here("order=desc", &[])
                .unwrap_err()
                .contains("another filter or order")
        );
        assert!(here("", &[("job", "a".to_owned())]).is_err());
        for bad in [
            "cursor=",
            "cursor=0",
            "cursor=zz",
            "cursor=00112233",
            "order=up",
            "page_size=501",
        ] {
            assert!(paging(bad, &[]).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_go_on_in_both_directions() {
        let names = ["a", "b", "c", "d"];
        let walk = |order: &str| {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let paging = paging(&format!("page_size=3&order={order}{cursor}"), &[]).unwrap();
                let (page, more) = of_names(names.iter(), &paging);
                seen.extend(page.into_iter().copied());
                if !more {
                    return seen.concat();
                }
                let last = seen.last().map(|name: &&str| name.as_bytes());
                let next = paging.page::<u8>(vec![], last).pagination.next_cursor;
                cursor = format!("&cursor={}", next.unwrap());
            }
        };
        assert_eq!(walk("asc"), "abcd");
        assert_eq!(walk("desc"), "dcba");
    }
}
