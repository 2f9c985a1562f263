/** @file Profiled parts of programs. */

/** Kind of work of a part. */
export type PartKind = 'product' | 'attention' | 'collective' | 'loop' | 'packing' | 'other';

/** A step that the threads of a program run together, or a unit within a step. */
export interface Part {
  readonly kind: PartKind;
  /** Short description of the computation. */
  readonly label: string;
  /** Layers behind the part, as scopes, with their shares of its time; the shares sum to 1. */
  readonly shares: readonly { readonly scope: string; readonly share: number }[];
  /** FLOPs of products and attention: a multiply-add counts as two, causally hidden pairs as none. */
  readonly flops: number;
  /** Bytes read from and written to memory that the threads share. */
  readonly bytes: number;
}
