/** @file An order of test files in which those that take long come first: at the end, all cores have short ones to share. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** A sequencer that begins with the files that match. */
export function longFirst(long: RegExp): typeof BaseSequencer {
  const isLong = ({ moduleId }: TestSpecification): boolean => long.test(moduleId);
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      const sorted = await super.sort(files);
      return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
    }
  };
}
