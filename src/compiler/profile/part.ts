/** @file Parts of programs: what a profile tells apart. */

/** What a part does. */
export type PartKind = 'product' | 'attention' | 'loop' | 'packing' | 'other';

/** Something that the threads of a program do together, one step of it or a unit within a step. */
export interface Part {
  readonly kind: PartKind;
  /** What it computes, in a few words. */
  readonly label: string;
  /** The layers that made it, as scopes, and how much of its time is each one's; together 1. */
  readonly shares: readonly { readonly scope: string; readonly share: number }[];
  /** Of products and attention: a multiply-add counts as two, and pairs that a causal mask leaves out as none. */
  readonly flops: number;
  /** Read from and written to memory that the threads share. */
  readonly bytes: number;
}
