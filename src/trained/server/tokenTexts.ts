/** @file Tokens in answers: their texts and bytes, which may be a part of a character. */
import type { TrainedRun } from '../trainedRun.js';

/** A token as answers have it. */
export interface TokenText {
  /** Its text; of a part of a character its bytes, as in `bytes:\xe2\x80`. */
  readonly token: string;
  /** Null where they are not known. */
  readonly bytes: readonly number[] | null;
}

/** Stands in texts for bytes that are no whole character. */
const REPLACEMENT = '\uFFFD';

/** The token of an id. */
export function tokenText(run: Pick<TrainedRun, 'decode' | 'bytesOf'>, id: number): TokenText {
  const token = run.decode([id]);
  const known = run.bytesOf(id);
  const bytes = known ?? (token.includes(REPLACEMENT) ? null : Buffer.from(token));
  if (known === null || Buffer.from(token).equals(known)) return { token, bytes: bytes && [...bytes] };
  const digits = Array.from(known, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`);
  return { token: `bytes:${digits.join('')}`, bytes: [...known] };
}

/** JSON has no infinity; OpenAI's answers have this for what is next to impossible. */
export const finite = (logprob: number): number => Math.max(logprob, -9999);
