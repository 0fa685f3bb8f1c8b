// What the dashboard uses of Preact.
export interface VNode {
  readonly type: unknown;
  readonly props: object;
  readonly key: unknown;
}
export type Child = VNode | string | number | bigint | boolean | null | undefined | Child[];
export declare function h(type: unknown, props: object | null, ...children: unknown[]): VNode;
export declare function Fragment(props: { children?: unknown }): Child;
export declare function render(tree: unknown, parent: Element): void;
