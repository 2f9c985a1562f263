/** @file Rows of random numbers whose text is these numbers, for decodes to write. */
import { SyntheticLmInput } from '../../src/inputs/index.js';

export class Numbers extends SyntheticLmInput {
  override idsToStrings({ data }: Parameters<SyntheticLmInput['idsToStrings']>[0]): string[] {
    return [Array.from(data).join(' ')];
  }
}
