/** @file Values that JSON keeps as they are. */

/** A value that JSON keeps as it is. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };
