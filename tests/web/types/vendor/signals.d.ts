// What the dashboard uses of the signals.
export interface ReadonlySignal<T> {
  readonly value: T;
  peek(): T;
  subscribe(listener: (value: T) => void): () => void;
}
export interface Signal<T> {
  value: T;
  peek(): T;
  subscribe(listener: (value: T) => void): () => void;
}
// An empty list or nothing says little of what comes: such a signal holds anything.
export declare function signal(first: undefined | null | never[]): Signal<any>;
export declare function signal<T>(first: T): Signal<T>;
export declare function computed<T>(make: () => T): ReadonlySignal<T>;
export declare function effect(run: () => void | (() => void)): () => void;
export declare function batch<T>(run: () => T): T;
export declare function untracked<T>(run: () => T): T;
