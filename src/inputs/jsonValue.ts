/** @file The type of JSON values. */

/** A value that JSON represents exactly. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };
