//! Where the items of a scatter are: in pages, so that a branch reads what is its own and not what all have.

use serde_json::{Value, json};

use crate::words::limits;

/// How a list of items is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Items {
    /// All of them.
    pub total: u32,
    /// So many stand on a page.
    pub per_page: u32,
}

impl Default for Items {
    fn default() -> Items {
        Items {
            total: 0,
            per_page: 1,
        }
    }
}

impl Items {
    /// Cuts a list: a page of small items fits into a row, one of large items is a file of a bounded size.
    pub fn of(list: &[Value]) -> Items {
        let total = list.len().max(1);
        let bytes: usize = list.iter().map(|item| item.to_string().len() + 1).sum();
        let each = bytes.div_ceil(total).max(1);
        let page = if each <= limits::ITEM_PAGE_BYTES {
            limits::ITEM_PAGE_BYTES
        } else {
            limits::ITEM_BLOB_BYTES
        };
        let per_page = (page / each).clamp(1, limits::ITEMS_PER_PAGE_MAX);
        Items {
            total: u32::try_from(list.len()).unwrap_or(u32::MAX),
            per_page: u32::try_from(per_page).unwrap_or(1),
        }
    }

    /// As it is kept.
    pub fn as_value(&self) -> Value {
        json!({"total": self.total, "page": self.per_page})
    }

    /// What was kept; nothing for what cannot be read.
    pub fn read(kept: &Value) -> Items {
        let number = |name: &str| kept[name].as_u64().and_then(|number| u32::try_from(number).ok());
        Items {
            total: number("total").unwrap_or(0),
            per_page: number("page").unwrap_or(1).max(1),
        }
    }

    /// How many pages there are.
    pub fn count(&self) -> u32 {
        self.total.div_ceil(self.per_page)
    }

    /// The page of an item, and its place on it.
    pub fn place(&self, branch: u32) -> (u32, usize) {
        (branch / self.per_page, (branch % self.per_page) as usize)
    }

    /// The pages of the list.
    pub fn pages(&self, list: Vec<Value>) -> Vec<(u32, Vec<Value>)> {
        let mut pages = Vec::new();
        let mut list = list.into_iter();
        for page in 0..self.count() {
            pages.push((page, list.by_ref().take(self.per_page as usize).collect()));
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_stands_on_its_page() {
        for (count, item) in [
            (1, "x".repeat(3)),
            (1_000, "x".repeat(200)),
            (70, "x".repeat(50_000)),
            (3, "x".repeat(3 << 20)),
        ] {
            let list: Vec<Value> = (0..count).map(|number| json!([number, item])).collect();
            let items = Items::of(&list);
            assert_eq!(Items::read(&items.as_value()), items);
            let pages = items.pages(list.clone());
            assert_eq!(pages.len(), items.count() as usize);
            for (branch, wanted) in (0..).zip(&list) {
                let (page, place) = items.place(branch);
                assert_eq!(&pages[page as usize].1[place], wanted);
            }
            let one = list[0].to_string().len();
            for (_, page) in &pages {
                let bytes = Value::Array(page.clone()).to_string().len();
                assert!(bytes <= limits::ITEM_BLOB_BYTES.max(one + 3), "{bytes}");
                assert!(
                    one > limits::ITEM_PAGE_BYTES || bytes <= 16 << 10,
                    "a page of small items fits into a row: {bytes}"
                );
            }
        }
        assert_eq!(Items::read(&Value::Null), Items::default());
        assert_eq!(Items::of(&[]).pages(Vec::new()), []);
    }
}
