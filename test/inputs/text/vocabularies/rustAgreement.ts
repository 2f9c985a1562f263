/** @file Comparison of PretrainedTokenizer with the Rust library `tokenizers`: ids, text, and text by pieces. */
import { Tokenizer } from 'tokenizers';
import { build } from '../../../../src/hparams/index.js';
import { InputError, PretrainedTokenizer } from '../../../../src/inputs/index.js';

/** What a tokenizer makes of a text; or its message, where it has no ids for it. */
interface Encoded {
  readonly ids?: readonly number[];
  readonly text?: string;
  readonly error?: string;
}

const shown = (error: unknown): string => (error as Error).message;

async function byRust(tokenizer: Tokenizer, text: string): Promise<Encoded> {
  try {
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false });
    const ids = encoding.getIds();
    return { ids, text: ids.length === 0 ? '' : await tokenizer.decode(ids, false) };
  } catch (error) {
    return { error: shown(error) };
  }
}

function byLuthier(tokenizer: PretrainedTokenizer, text: string): Encoded {
  try {
    const ids = [...tokenizer.encode(text)];
    return { ids, text: tokenizer.decode(ids) };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error: error.message.replace(/^PretrainedTokenizer: tokenizer\.json: /, '') };
  }
}

/** Differences between the two on some texts; none where the library refuses the document, and so does Luthier. */
export async function differences(contents: string, texts: readonly string[]): Promise<object[]> {
  const own = build(PretrainedTokenizer.config({ file: 'tokenizer.json', contents }));
  const found: object[] = [];
  let rust: Tokenizer;
  try {
    rust = Tokenizer.fromString(contents);
  } catch (error) {
    try {
      own.encode('a');
      return [{ refusedByRust: shown(error) }];
    } catch {
      return [];
    }
  }
  for (const text of texts) {
    const [expected, given] = [await byRust(rust, text), byLuthier(own, text)];
    if (JSON.stringify(expected) !== JSON.stringify(given)) found.push({ text, expected, given });
  }
  return found;
}

/** The text of ids that are decoded one by one behind a context. */
export function streamed(tokenizer: PretrainedTokenizer, ids: readonly number[], from: number): string {
  const decoder = tokenizer.decoder(ids.slice(0, from));
  return [...ids.slice(from).map((id) => decoder.take(id)), decoder.rest()].join('');
}
