//! A route and what there is to say about it, declared once: the router is built from it, and so is the document.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::app::App;
use super::caller::{self, Duty, Elsewhere};
use super::job_list::snake;
use super::param::Param;
use super::{front, input};

/// The named shapes of a document.
pub(super) type Components = BTreeMap<String, Value>;
/// Makes the schema of a body, and adds the named ones that it needs.
pub(super) type Shape = fn(&mut Components) -> Value;

/// One answer that is no refusal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Success {
    pub(super) status: u16,
    pub(super) media: &'static str,
    pub(super) shape: Shape,
}

impl Success {
    /// What a tenant gets of which there is nothing of the kind: lists are empty.
    fn elsewhere(&self) -> Elsewhere {
        let schema = (self.shape)(&mut Components::new());
        if schema["type"] == "array" {
            Elsewhere::EmptyList
        } else if schema["properties"].get("pagination").is_some() {
            Elsewhere::EmptyPage
        } else {
            Elsewhere::Nothing
        }
    }
}

/// The nouns of scopes whose things are all those of the tenant `default`.
const OF_DEFAULT: [&str; 9] = [
    "approval", "bridge", "event", "job", "metrics", "run", "slot", "system", "workflow",
];

/// A body that is a document of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Body {
    pub(super) shape: Shape,
    pub(super) required: bool,
}

/// What there is to say about a route.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) method: &'static str,
    /// As callers write it: with `:verb`.
    pub(super) path: &'static str,
    pub(super) id: &'static str,
    /// What a key must be allowed to do; `open` needs no key.
    pub(super) scope: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: Vec<Param>,
    pub(super) fields: Vec<Param>,
    /// The whole body, where it is a document of its own.
    pub(super) body: Option<Body>,
    pub(super) successes: Vec<Success>,
    /// The thing has a version: `ETag` on reads, `If-Match` on changes.
    pub(super) versioned: bool,
    /// Statuses of refusals beside those that every route has.
    pub(super) refusals: Vec<u16>,
    /// False where the audit has no row of it.
    pub(super) audited: bool,
}

impl Operation {
    /// Without parameters, fields and answers yet.
    pub(super) fn new(id: &'static str, scope: &'static str, summary: &'static str) -> Operation {
        Operation {
            method: "",
            path: "",
            id,
            scope,
            summary,
            query: Vec::new(),
            fields: Vec::new(),
            body: None,
            successes: Vec::new(),
            versioned: false,
            refusals: Vec::new(),
            audited: true,
        }
    }

    /// The audit has no row of it: what it does is told elsewhere, and too often.
    #[must_use]
    pub(super) fn unaudited(mut self) -> Operation {
        self.audited = false;
        self
    }

    /// What is checked before the route.
    fn duty(&self) -> Duty {
        let noun = self.scope.split(':').next().unwrap_or_default();
        let elsewhere = if !OF_DEFAULT.contains(&noun) {
            Elsewhere::Own
        } else if self.method != "get" || self.path.contains('{') {
            Elsewhere::Nothing
        } else {
            self.successes
                .first()
                .map_or(Elsewhere::Nothing, Success::elsewhere)
        };
        Duty {
            id: self.id,
            scope: self.scope,
            elsewhere,
            audited: self.audited,
        }
    }

    /// Query parameters.
    #[must_use]
    pub(super) fn query(mut self, params: &[Param]) -> Operation {
        self.query.extend_from_slice(params);
        self
    }

    /// Fields of the body.
    #[must_use]
    pub(super) fn fields(mut self, params: &[Param]) -> Operation {
        self.fields.extend_from_slice(params);
        self
    }

    /// The body is a document of its own, not fields.
    #[must_use]
    pub(super) fn takes(mut self, shape: Shape, required: bool) -> Operation {
        self.body = Some(Body { shape, required });
        self
    }

    /// Status 200 with a JSON body.
    #[must_use]
    pub(super) fn shows(self, shape: Shape) -> Operation {
        self.answers(200, "application/json", shape)
    }

    /// Status 201 with a JSON body and a `Location`.
    #[must_use]
    pub(super) fn creates(self, shape: Shape) -> Operation {
        self.answers(201, "application/json", shape)
    }

    /// Status 202 with a JSON body and a `Location`.
    #[must_use]
    pub(super) fn accepts(self, shape: Shape) -> Operation {
        self.answers(202, "application/json", shape)
    }

    /// Status 200 with text.
    #[must_use]
    pub(super) fn sends(self, media: &'static str) -> Operation {
        self.answers(200, media, |_| json!({"type": "string"}))
    }

    fn answers(mut self, status: u16, media: &'static str, shape: Shape) -> Operation {
        self.successes.push(Success { status, media, shape });
        self
    }

    /// The thing has a version.
    #[must_use]
    pub(super) fn versioned(mut self) -> Operation {
        self.versioned = true;
        self
    }

    /// Further refusals, by their status.
    #[must_use]
    pub(super) fn refuses(mut self, statuses: &[u16]) -> Operation {
        self.refusals.extend_from_slice(statuses);
        self
    }
}

/// All routes with what there is to say about them.
pub(super) struct Page {
    pub(super) router: Router<App>,
    pub(super) operations: Vec<Operation>,
}

impl Page {
    /// No route.
    pub(super) fn new() -> Page {
        Page {
            router: Router::new(),
            operations: Vec::new(),
        }
    }

    /// Adds a route that changes nothing.
    #[must_use]
    pub(super) fn get<H, T>(self, path: &'static str, handler: H, operation: Operation) -> Page
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.add("get", get(handler), path, operation)
    }

    /// Adds a route that changes something.
    #[must_use]
    pub(super) fn post<H, T>(self, path: &'static str, handler: H, operation: Operation) -> Page
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.add("post", post(handler), path, operation)
    }

    /// Adds a route that puts something in the place of another.
    #[must_use]
    pub(super) fn put<H, T>(self, path: &'static str, handler: H, operation: Operation) -> Page
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.add("put", put(handler), path, operation)
    }

    /// Adds a route that changes some fields.
    #[must_use]
    pub(super) fn patch<H, T>(self, path: &'static str, handler: H, operation: Operation) -> Page
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.add("patch", patch(handler), path, operation)
    }

    /// Adds a route that removes something.
    #[must_use]
    pub(super) fn delete<H, T>(self, path: &'static str, handler: H, operation: Operation) -> Page
    where
        H: Handler<T, App>,
        T: 'static,
    {
        self.add("delete", delete(handler), path, operation)
    }

    fn add(
        mut self,
        method: &'static str,
        route: MethodRouter<App>,
        path: &'static str,
        operation: Operation,
    ) -> Page {
        // What knows no parameters would pass over a misspelt wish; probes and scrapers may send what they like.
        let lenient = !operation.query.is_empty() || ["open", "metrics:read"].contains(&operation.scope);
        let route = if lenient {
            route
        } else {
            route.layer(from_fn(without_query))
        };
        let operation = Operation {
            method,
            path,
            ..operation
        };
        let duty = operation.duty();
        let route = route.layer(from_fn(move |request: Request, next: Next| {
            caller::guard(duty, request, next)
        }));
        self.router = self.router.route(&inner(path), route);
        self.operations.push(operation);
        self
    }
}

async fn without_query(request: Request, next: Next) -> Response {
    match input::query(request.uri(), input::NOTHING) {
        Ok(_) => next.run(request).await,
        Err(problem) if front::is_plain(request.uri().path()) => problem.with_sentence().into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// `/api/runs/{run}:cancel` as the router knows it: `/api/runs/{run}/~cancel`.
fn inner(path: &str) -> String {
    path.replace(':', "/~")
}

/// A type as it is.
pub(super) fn plain<T: ToSchema>(components: &mut Components) -> Value {
    reference_to::<T>(components)
}

/// A list of a type.
pub(super) fn list<T: ToSchema>(components: &mut Components) -> Value {
    json!({"type": "array", "items": reference_to::<T>(components)})
}

/// `{"data": …}` of a type.
pub(super) fn data<T: ToSchema>(components: &mut Components) -> Value {
    in_data(&reference_to::<T>(components))
}

/// `{"data": …}` of a declared object, with what may be meant otherwise.
pub(super) fn declared<T: ToSchema>(components: &mut Components) -> Value {
    let warning = reference_to::<super::declared_shapes::WarningShape>(components);
    let mut schema = in_data(&reference_to::<T>(components));
    schema["properties"]["warnings"] = json!({"type": "array", "items": warning});
    schema
}

/// One page of a list of a type.
pub(super) fn page_of<T: ToSchema>(components: &mut Components) -> Value {
    let items = reference_to::<T>(components);
    in_page(&items, components)
}

/// `{"data": …}` of a type without a prefix, in snake case.
pub(super) fn snake_data<T: ToSchema>(components: &mut Components) -> Value {
    in_data(&snake_reference_to::<T>(components))
}

/// One page of a list of such a type.
pub(super) fn snake_page_of<T: ToSchema>(components: &mut Components) -> Value {
    let items = snake_reference_to::<T>(components);
    in_page(&items, components)
}

/// `{"data": …}` with an object whose fields are described elsewhere.
pub(super) fn any_data(_components: &mut Components) -> Value {
    in_data(&json!({"type": "object", "additionalProperties": true}))
}

/// A JSON object that is described elsewhere.
pub(super) fn any_object(_components: &mut Components) -> Value {
    json!({"type": "object", "additionalProperties": true})
}

/// `{"data": …}` with a list of such objects.
pub(super) fn any_list(_components: &mut Components) -> Value {
    in_data(&json!({"type": "array", "items": {"type": "object", "additionalProperties": true}}))
}

/// One page of such objects.
pub(super) fn any_page(components: &mut Components) -> Value {
    in_page(
        &json!({"type": "object", "additionalProperties": true}),
        components,
    )
}

fn in_data(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"data": schema}, "required": ["data"]})
}

fn in_page(items: &Value, components: &mut Components) -> Value {
    let pagination = reference_to::<super::paging::Pagination>(components);
    json!({
        "type": "object",
        "properties": {"data": {"type": "array", "items": items}, "pagination": pagination},
        "required": ["data", "pagination"],
    })
}

fn reference_to<T: ToSchema>(components: &mut Components) -> Value {
    for (name, schema) in schemas_of::<T>() {
        let before = components.insert(name.clone(), schema.clone());
        assert!(
            before.is_none_or(|before| before == schema),
            "two shapes are called {name}; say `#[schema(as = …)]` on one"
        );
    }
    json!({"$ref": reference(&public_name(&T::name()))})
}

/// The schema of a type and all that it needs, under the names of the document.
fn schemas_of<T: ToSchema>() -> Components {
    let mut needed = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut needed);
    let named = needed.into_iter().map(|(name, schema)| {
        let mut schema = serde_json::to_value(schema).expect("a schema is plain data");
        each_reference(&mut schema, &|name| public_name(name));
        (public_name(&name), schema)
    });
    named.collect()
}

fn snake_reference_to<T: ToSchema>(components: &mut Components) -> Value {
    let snake_name = |name: &str| format!("Api{name}");
    for (name, mut schema) in schemas_of::<T>() {
        each_reference(&mut schema, &snake_name);
        components.insert(snake_name(&name), snake_fields(schema));
    }
    json!({"$ref": reference(&snake_name(&public_name(&T::name())))})
}

const HEAD: &str = "#/components/schemas/";

fn reference(name: &str) -> String {
    format!("{HEAD}{name}")
}

/// Views are called so inside only.
fn public_name(name: &str) -> String {
    name.strip_suffix("View").unwrap_or(name).to_owned()
}

fn each_reference(schema: &mut Value, rename: &dyn Fn(&str) -> String) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                let referred = value.as_str().and_then(|text| text.strip_prefix(HEAD));
                match referred.filter(|_| name == "$ref").map(rename) {
                    Some(renamed) => *value = Value::from(reference(&renamed)),
                    None => each_reference(value, rename),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_reference(item, rename)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn snake_fields(mut schema: Value) -> Value {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let renamed = std::mem::take(properties).into_iter();
        *properties = renamed.map(|(name, value)| (snake(&name), value)).collect();
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        for name in required {
            *name = Value::from(snake(name.as_str().unwrap_or_default()));
        }
    }
    schema
}
