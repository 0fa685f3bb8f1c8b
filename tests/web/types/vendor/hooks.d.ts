// What the dashboard uses of Preact's hooks.
export interface Ref<T> {
  current: T;
}
type Inputs = readonly unknown[];
type End = void | undefined | (() => void);
// Nothing says little of what comes.
export declare function useState(first: undefined | null | never[]): [any, (next: any) => void];
export declare function useState<T>(first: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export declare function useState(): [any, (next: any) => void];
export declare function useRef(first: undefined | null | never[]): Ref<any>;
export declare function useRef<T>(first: T): Ref<T>;
export declare function useRef(): Ref<any>;
export declare function useEffect(effect: () => End, inputs?: Inputs): void;
export declare function useLayoutEffect(effect: () => End, inputs?: Inputs): void;
export declare function useMemo<T>(make: () => T, inputs: Inputs): T;
export declare function useCallback<T extends (...given: any[]) => unknown>(call: T, inputs: Inputs): T;
