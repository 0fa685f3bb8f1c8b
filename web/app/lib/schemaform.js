// A form made from the JSON Schema of a run's input, as far as forms go: what is deeper is written as JSON. Pure.

/**
 * @typedef {{name: string, label: string, kind: "text" | "long" | "number" | "integer" | "yes" | "choice" | "moment" | "json", required: boolean,
 *   hint: string, value: string, choices?: {value: string, text: string}[], min?: number, max?: number, pattern?: string}} FormField
 *   `value`: what stands there at first
 */

const LONG_TEXT = 200;
const FIELDS_MAX = 40;

/** The one type of a schema beside null. @param {any} schema */
function typeOf(schema) {
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => type !== "null");
  return types.length === 1 ? types[0] : undefined;
}

/** @param {any} schema */
function kindOf(schema) {
  const type = typeOf(schema);
  if (Array.isArray(schema.enum) && schema.enum.length > 0 && schema.enum.every((value) => value === null || typeof value !== "object")) return "choice";
  if (type === "boolean") return "yes";
  if (type === "integer" || type === "number") return type;
  if (type === "string") return schema.format === "date-time" ? "moment" : schema.maxLength === undefined || schema.maxLength > LONG_TEXT ? (schema.contentMediaType || schema.format === "markdown" ? "long" : "text") : "text";
  return "json";
}

/** What a schema says of a value, in a line. @param {any} schema */
function hintOf(schema) {
  const bounds = [
    schema.minimum !== undefined && `at least ${schema.minimum}`,
    schema.maximum !== undefined && `at most ${schema.maximum}`,
    schema.minLength > 0 && `at least ${schema.minLength} characters`,
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
    schema.minItems > 0 && `at least ${schema.minItems} items`,
    schema.pattern && `matches ${schema.pattern}`,
    schema.format && schema.format !== "date-time" && schema.format,
  ].filter(Boolean);
  return [schema.description, bounds.join(", ")].filter(Boolean).join(" · ");
}

/** A first value as its field has it. @param {any} value @param {string} kind */
function shown(value, kind) {
  if (value === undefined || value === null) return kind === "yes" ? "false" : "";
  if (kind === "json") return JSON.stringify(value, null, 2);
  return kind === "choice" || typeof value !== "string" ? JSON.stringify(value) : value;
}

/**
 * The fields of a form, or nothing when the schema is none of an object with named properties.
 * @param {any} schema @returns {FormField[] | undefined}
 */
export function fieldsOf(schema) {
  const properties = schema && typeof schema === "object" ? schema.properties : undefined;
  if (!properties || typeof properties !== "object" || (schema.type !== undefined && typeOf(schema) !== "object")) return undefined;
  const names = Object.keys(properties);
  if (names.length === 0 || names.length > FIELDS_MAX) return undefined;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return names.map((name) => {
    const own = properties[name] && typeof properties[name] === "object" ? properties[name] : {};
    const kind = kindOf(own);
    const choices = kind === "choice" ? own.enum.map((value) => ({ value: JSON.stringify(value), text: value === null ? "null" : String(value) })) : undefined;
    const first = own.default !== undefined ? own.default : own.const;
    return { name, label: own.title ?? name, kind, required: required.has(name), hint: hintOf(own), value: shown(first, kind), choices, min: own.minimum, max: own.maximum, pattern: own.pattern };
  });
}

/** The text of one field as a value; throws a sentence. @param {FormField} field @param {string} text */
function read(field, text) {
  if (field.kind === "yes") return text === "true";
  if (field.kind === "choice") return JSON.parse(text);
  if (field.kind === "number" || field.kind === "integer") {
    const number = Number(text);
    if (!Number.isFinite(number)) throw new Error("is not a number");
    if (field.kind === "integer" && !Number.isInteger(number)) throw new Error("is not a whole number");
    return number;
  }
  if (field.kind === "moment") {
    const at = new Date(text);
    if (Number.isNaN(at.getTime())) throw new Error("is not a date and time");
    return at.toISOString();
  }
  if (field.kind === "json") {
    try {
      return JSON.parse(text);
    } catch {
      throw new Error("is not JSON");
    }
  }
  return text;
}

/**
 * What the fields say together. An empty field is left out, unless it must be there.
 * @param {FormField[]} fields @param {Record<string, string>} values
 * @returns {{input: Record<string, unknown>, faults: Record<string, string>}}
 */
export function inputOf(fields, values) {
  const input = {};
  const faults = {};
  for (const field of fields) {
    const text = values[field.name] ?? field.value;
    if (text === "" && field.kind !== "yes") {
      if (field.required && (field.kind === "text" || field.kind === "long")) input[field.name] = "";
      else if (field.required) faults[field.name] = "is needed";
      continue;
    }
    // A box that nobody ticked says nothing, unless something must be said.
    if (field.kind === "yes" && text !== "true" && !field.required && field.value !== "true") continue;
    try {
      input[field.name] = read(field, text);
    } catch (error) {
      faults[field.name] = error.message;
    }
  }
  return { input, faults };
}

/** The values of the fields that say this; what no field can say is not in them. @param {FormField[]} fields @param {any} input */
export function valuesOf(fields, input) {
  return Object.fromEntries(fields.filter((field) => input && Object.hasOwn(input, field.name)).map((field) => [field.name, shown(input[field.name], field.kind)]));
}
