/** @file Mutations of a file: its numbers first, then bytes, cuts and doubled parts. */
import fc from 'fast-check';
import type { Seed, Site } from './mutantKind.js';

/** A change of a file. */
interface Edit {
  /** For messages. */
  readonly what: string;
  readonly from: number;
  readonly to: number;
  readonly bytes: Uint8Array;
}

/** A mutant of a seed. */
export interface Mutation {
  readonly seed: Seed;
  readonly edits: readonly Edit[];
  readonly isMended: boolean;
  /** Whether it has another number where a whole file can have but one, or other bytes than a checksum says. */
  readonly isLie: boolean;
}

const VALUES: readonly ((value: bigint) => bigint | 'NaN')[] = [
  () => -1n,
  () => 0n,
  (value) => value - 1n,
  (value) => value + 1n,
  (value) => 2n * value,
  () => 100_000_000n,
  () => 2n ** 31n - 1n,
  () => 2n ** 31n,
  () => 2n ** 32n - 1n,
  () => 2n ** 40n,
  () => 2n ** 53n,
  () => 2n ** 63n - 1n,
  () => 'NaN',
];

/** Part of the mutants that have one other number. */
const PART_OF_NUMBERS = 0.6;

function lie(site: Site, value: bigint | 'NaN'): Edit | undefined {
  const bytes = value === site.value ? undefined : site.encode(value);
  return bytes && { what: `${site.name} ${site.value} → ${value}`, from: site.from, to: site.to, bytes };
}

/** The edits of one number each that a file can have. */
function lies(seed: Seed): Mutation[] {
  return seed.sites.flatMap((site) =>
    VALUES.flatMap((value): Mutation[] => {
      const edit = lie(site, value(site.value));
      return edit === undefined
        ? []
        : [{ seed, edits: [edit], isMended: false, isLie: site.isFree !== true }];
    }),
  );
}

function anyEdit({ bytes, sites }: Seed): fc.Arbitrary<Edit> {
  const at = fc.nat(bytes.length - 1);
  const damage = fc.tuple(at, fc.oneof(fc.constantFrom(0, 1, 0x7f, 0x80, 0xff), fc.nat(255)));
  const part = fc.tuple(at, at).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  const empty = new Uint8Array(0);
  return fc.oneof(
    ...(sites.length === 0
      ? []
      : [
          {
            weight: 4,
            arbitrary: fc
              .tuple(fc.constantFrom(...sites), fc.constantFrom(...VALUES))
              .map(([site, value]) => lie(site, value(site.value)))
              .filter((edit) => edit !== undefined),
          },
        ]),
    {
      weight: 4,
      arbitrary: damage.map(([from, byte]) => ({
        what: `byte ${from} → ${byte}`,
        from,
        to: from + 1,
        bytes: Uint8Array.of(byte),
      })),
    },
    {
      weight: 1,
      arbitrary: at.map((from) => ({ what: `cut at ${from}`, from, to: bytes.length, bytes: empty })),
    },
    {
      weight: 1,
      arbitrary: part.map(([from, to]) => ({ what: `without ${from} to ${to}`, from, to, bytes: empty })),
    },
    {
      weight: 1,
      arbitrary: part.map(([from, to]) => ({
        what: `twice ${from} to ${to}`,
        from: to,
        to,
        bytes: bytes.slice(from, to),
      })),
    },
  );
}

/** Whether checksums cover all that is other. */
const isFoundOut = ({ seed, edits, isMended }: Omit<Mutation, 'isLie'>): boolean =>
  !isMended &&
  edits.every(
    ({ from, to, bytes }) =>
      bytes.length === to - from &&
      seed.checksummed?.some(([start, end]) => start <= from && to <= end) === true,
  );

/** Mutations of some files, the same for the same `seed`. @param canMend whether checksums can be mended */
export function mutationsOf(
  seeds: readonly Seed[],
  canMend: boolean,
  count: number,
  seed: number,
): Mutation[] {
  const all = seeds.flatMap(lies);
  const [numbers] = fc.sample(fc.shuffledSubarray(all, { minLength: all.length }), { seed, numRuns: 1 });
  const isMended = (i: number): boolean => canMend && i % 2 === 1;
  const first = numbers!
    .slice(0, Math.ceil(PART_OF_NUMBERS * count))
    .map((mutation, i) => ({ ...mutation, isMended: isMended(i) }));
  const any = fc.constantFrom(...seeds).chain((of) =>
    fc.record({
      seed: fc.constant(of),
      edits: fc.array(anyEdit(of), { minLength: 1, maxLength: 3 }),
      isMended: canMend ? fc.boolean() : fc.constant(false),
    }),
  );
  const others = fc.sample(any, { seed, numRuns: count - first.length });
  return [...first, ...others.map((other) => ({ ...other, isLie: isFoundOut(other) }))];
}

/** The mutant's bytes. */
export function mutated({ seed, edits }: Mutation): Uint8Array {
  // From behind, so that an edit moves no other.
  const ordered = edits.toSorted((a, b) => b.from - a.from);
  return ordered.reduce<Uint8Array>(
    (bytes, { from, to, bytes: other }) =>
      Buffer.concat([bytes.subarray(0, from), other, bytes.subarray(to)]),
    seed.bytes,
  );
}

/** For messages. */
export const describeMutation = ({ seed, edits, isMended }: Mutation): string =>
  `${seed.name}: ${edits.map(({ what }) => what).join(', ')}${isMended ? ', checksums mended' : ''}`;
