// What the dashboard uses of htm: a template becomes the tree that `h` makes.
import { VNode } from "./preact.js";
type Template = (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
declare const htm: { bind(h: unknown): Template };
export default htm;
