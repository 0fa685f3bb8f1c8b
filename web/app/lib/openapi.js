// The API's own document, as the reference shows it: operations in groups, schemas without references. Pure.

/**
 * @typedef {{name: string, in: string, required: boolean, about: string, schema: any}} Parameter
 * @typedef {{status: string, about: string, media?: string, schema?: any, example?: any, headers: {name: string, about: string}[]}} Reply
 * @typedef {{id: string, method: string, path: string, tag: string, summary: string, about: string, scope: string, parameters: Parameter[],
 *   body?: {schema: any, example?: any, required: boolean}, replies: Reply[], problems: Reply[]}} Operation
 * @typedef {{name: string, required: boolean, type: string, about: string, schema: any, seen: string[], again?: string}} Field
 */

const GROUPS = [
  { title: "Jobs and schedules", tags: ["jobs", "schedules"] },
  { title: "Slot pools and runs", tags: ["pools", "runs"] },
  { title: "The daemon", tags: ["daemon"] },
];
const METHODS = ["get", "post", "put", "patch", "delete"];

/** What a `$ref` points to. @param {any} doc @param {any} value */
export function deref(doc, value) {
  let found = value;
  for (let steps = 0; found?.$ref && steps < 20; steps += 1) {
    found = found.$ref.replace(/^#\//, "").split("/").reduce((at, part) => at?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], doc);
  }
  return found ?? {};
}

/** The name of what a `$ref` points to. @param {any} value */
const nameOf = (value) => value?.$ref?.split("/").pop();

/** @param {any} doc @param {string} status @param {any} raw @returns {Reply} */
function reply(doc, status, raw) {
  const found = deref(doc, raw);
  const [media, content] = Object.entries(found.content ?? {})[0] ?? [];
  return {
    status,
    about: found.description ?? "",
    media,
    schema: content?.schema,
    example: content?.example,
    headers: Object.entries(found.headers ?? {}).map(([name, header]) => ({ name, about: deref(doc, header).description ?? "" })),
  };
}

/** Every operation of the document, by path and method. @param {any} doc @returns {Operation[]} */
export function operations(doc) {
  const found = [];
  for (const [path, item] of Object.entries(doc.paths ?? {})) {
    for (const method of METHODS) {
      const raw = item[method];
      if (!raw) continue;
      const replies = Object.entries(raw.responses ?? {}).map(([status, each]) => reply(doc, status, each));
      const body = deref(doc, raw.requestBody).content?.["application/json"];
      found.push({
        id: raw.operationId ?? `${method} ${path}`,
        method: method.toUpperCase(),
        path,
        tag: raw.tags?.[0] ?? "other",
        summary: raw.summary ?? "",
        about: raw.description ?? "",
        scope: raw["x-scope"] ?? "",
        parameters: [...(item.parameters ?? []), ...(raw.parameters ?? [])].map((each) => deref(doc, each)).map((each) => ({
          name: each.name, in: each.in, required: each.required ?? false, about: each.description ?? "", schema: deref(doc, each.schema),
        })),
        body: body && { schema: body.schema, example: body.example, required: deref(doc, raw.requestBody).required ?? false },
        replies: replies.filter(({ status }) => status < "400"),
        problems: replies.filter(({ status }) => status >= "400"),
      });
    }
  }
  return found;
}

/** The operations by what they are about; a tag nobody knows makes a group of its own. @param {Operation[]} all */
export function groups(all) {
  const known = new Set(GROUPS.flatMap(({ tags }) => tags));
  const others = [...new Set(all.map(({ tag }) => tag).filter((tag) => !known.has(tag)))].map((tag) => ({ title: tag.charAt(0).toUpperCase() + tag.slice(1), tags: [tag] }));
  return [...GROUPS, ...others]
    .map(({ title, tags }) => ({ title, operations: tags.flatMap((tag) => all.filter((each) => each.tag === tag)) }))
    .filter((group) => group.operations.length > 0);
}

/** Whether an operation is meant by a filter. @param {Operation} operation @param {{query: Record<string, string[]>, words: string[]}} filter */
export function isMeant(operation, { query, words }) {
  const text = `${operation.id} ${operation.path} ${operation.summary} ${operation.parameters.map(({ name }) => name).join(" ")}`.toLowerCase();
  return words.every((word) => text.includes(word.toLowerCase()))
    && (!query.method || query.method.some((method) => method.toUpperCase() === operation.method))
    && (!query.scope || query.scope.some((scope) => operation.scope === scope || operation.scope.startsWith(`${scope}:`)))
    && (!query.tag || query.tag.includes(operation.tag));
}

/**
 * A schema in one piece: references followed, `allOf` joined, `null` taken out of the choices.
 * @param {any} doc @param {any} raw @param {string[]} [seen] names on the way here
 * @returns {{schema: any, name?: string, nullable: boolean, again?: string, seen: string[]}}
 */
export function whole(doc, raw, seen = []) {
  const name = nameOf(raw);
  if (name && seen.includes(name)) return { schema: {}, name, nullable: false, again: name, seen };
  const path = name ? [...seen, name] : seen;
  const schema = deref(doc, raw);
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) {
    const real = choices.filter((each) => each.type !== "null");
    const nullable = real.length < choices.length;
    if (real.length === 1) {
      const one = whole(doc, real[0], path);
      return { ...one, schema: { ...one.schema, description: schema.description ?? one.schema.description }, nullable: nullable || one.nullable, name: one.name ?? name };
    }
    return { schema: { ...schema, choices: real }, name, nullable, seen: path };
  }
  if (schema.allOf) {
    /** @type {any} */
    const joined = { type: "object", properties: {}, required: [], description: schema.description };
    let all = path;
    for (const each of schema.allOf) {
      const part = whole(doc, each, path);
      Object.assign(joined.properties, part.schema.properties);
      joined.required.push(...(part.schema.required ?? []));
      if (part.schema.choices) joined.choices = part.schema.choices;
      all = [...new Set([...all, ...part.seen])];
    }
    return { schema: joined, name, nullable: false, seen: all };
  }
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  return { schema: { ...schema, type: types.find((each) => each !== "null") }, name, nullable: types.includes("null"), seen: path };
}

/** A type in a few words: `list of Run`, `text or null`. @param {any} doc @param {any} raw @returns {string} */
export function typeText(doc, raw) {
  const { schema, name, nullable } = whole(doc, raw);
  const or = nullable ? " or null" : "";
  if (schema.type === "array") return `list of ${typeText(doc, schema.items ?? {})}${or}`;
  if (schema.enum) return `${schema.enum.map((each) => JSON.stringify(each)).join(" | ")}${or}`;
  if (schema.choices) return `${name ?? "one of several"}${or}`;
  if (schema.type === "object" || schema.properties) return `${name ?? (schema.additionalProperties && !schema.properties ? "map" : "object")}${or}`;
  const plain = { string: schema.format === "date-time" ? "instant" : "text", integer: "integer", number: "number", boolean: "true or false" }[schema.type];
  return `${plain ?? (schema.const !== undefined ? JSON.stringify(schema.const) : "anything")}${or}`;
}

/**
 * The fields right below a schema; none of a schema that was met on the way here.
 * @param {any} doc @param {any} raw @param {string[]} [seen] @returns {Field[]}
 */
export function fields(doc, raw, seen = []) {
  const found = whole(doc, raw, seen);
  if (found.again) return [];
  const { schema } = found;
  if (schema.type === "array") return fields(doc, schema.items ?? {}, found.seen);
  const field = (name, each, required) => {
    const under = whole(doc, each, found.seen);
    const inner = under.schema.type === "array" ? whole(doc, under.schema.items ?? {}, under.seen) : under;
    return { name, required, type: typeText(doc, each), about: deref(doc, each).description ?? under.schema.description ?? "", schema: each, seen: found.seen, again: inner.again };
  };
  const own = Object.entries(schema.properties ?? {}).map(([name, each]) => field(name, each, (schema.required ?? []).includes(name)));
  if (schema.additionalProperties && typeof schema.additionalProperties === "object") own.push(field("any name", schema.additionalProperties, false));
  return [...own, ...(schema.choices ?? []).map((each, index) => field(`either ${index + 1}`, each, false))];
}

/** @param {string} text */
const encode = (text) => encodeURIComponent(text);

/**
 * The path of an operation with values filled in; what is not given stays as it is, or is left out of the query.
 * @param {Operation} operation @param {Record<string, string>} values
 */
export function filled(operation, values) {
  const path = operation.path.replace(/\{([^}]+)\}/g, (hole, name) => (values[name] ? encode(values[name]) : hole));
  const query = new URLSearchParams();
  for (const { name, in: place, schema } of operation.parameters) {
    const value = values[name]?.trim();
    if (place !== "query" || !value) continue;
    for (const each of schema.type === "array" ? value.split(",").map((one) => one.trim()).filter(Boolean) : [value]) query.append(name, each);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}
