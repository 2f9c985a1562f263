/** @file Errors of inputs: InputError for what is wrong with one, EndOfData where its data ends. */

/** An input can't be made or can't go on: the message names the input, the problem and what is valid. */
export class InputError extends Error {
  override readonly name = 'InputError';
}

/** Thrown by `getNext` and `peek` after the last batch of an input that does not repeat. */
export class EndOfData extends Error {
  override readonly name = 'EndOfData';

  /** @param inputName name of the input that has ended */
  constructor(readonly inputName: string) {
    super(`Input '${inputName}' has no more data.`);
  }
}
