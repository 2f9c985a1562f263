/** @file ByteTokenizer: bytes as token ids. */
import type { SourceFile } from '../corpusFiles.js';
import type { TokenArray } from '../tokens.js';
import { BaseTokenizer, checkIds } from './baseTokenizer.js';
import { ByteDecoder, type TokenDecoder } from './tokenDecoders.js';

/** UTF-8 bytes as ids 0 … 255: no vocabulary, and every text can be encoded. */
export class ByteTokenizer extends BaseTokenizer.with({}) {
  override get vocabSize(): number {
    return 256;
  }

  override get maxTokenBytes(): number {
    return 1;
  }

  override tokenBytes(id: number): Uint8Array | undefined {
    return id < this.vocabSize ? Uint8Array.of(id) : undefined;
  }

  override encode(text: string): Int32Array {
    return new Int32Array(Buffer.from(text));
  }

  /** Invalid UTF-8, which a model may well write, becomes U+FFFD. */
  override decode(ids: ArrayLike<number>): string {
    checkIds(ids, this.vocabSize, 'ByteTokenizer');
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(ids));
  }

  override decoder(context: ArrayLike<number> = []): TokenDecoder {
    const bytesOf = (id: number) => {
      checkIds([id], this.vocabSize, 'ByteTokenizer');
      return Uint8Array.of(id);
    };
    return new ByteDecoder(bytesOf, context);
  }

  override encodeFile(file: SourceFile): TokenArray {
    return file.bytes;
  }
}
