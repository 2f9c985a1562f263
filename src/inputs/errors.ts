/** @file Errors of inputs: InputError for what is wrong with one, EndOfData where its data ends. */

/** An input cannot be made or cannot go on: the message says which input, what is wrong and what is valid. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/** Thrown by `getNext` and `peek` once an input that does not repeat has given its last batch. */
export class EndOfData extends Error {
  override readonly name = 'EndOfData';

  /** @param inputName name of the input that has ended */
  constructor(readonly inputName: string) {
    super(`Input '${inputName}' has no more data.`);
  }
}
