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
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** The token of an id. */
export function tokenText(run: Pick<TrainedRun, 'decode' | 'tokenBytes'>, id: number): TokenText {
  const bytes = run.tokenBytes(id);
  const token = bytes === undefined ? run.decode([id]) : utf8.decode(bytes);
  if (bytes === undefined)
    return { token, bytes: token.includes(REPLACEMENT) ? null : [...Buffer.from(token)] };
  if (Buffer.from(token).equals(bytes)) return { token, bytes: [...bytes] };
  const digits = Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`);
  return { token: `bytes:${digits.join('')}`, bytes: [...bytes] };
}

/** JSON has no infinity; OpenAI's answers have this for what is next to impossible. */
export const finite = (logprob: number): number => Math.max(logprob, -9999);
