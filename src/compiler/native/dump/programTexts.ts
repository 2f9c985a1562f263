/** @file Readable files with the result of each pass of the native lowering. */
import { graphText } from '../../program/graphText.js';
import type { NativeProgram } from '../c/lowerToC.js';
import { memoryText, stepsText } from './planText.js';
import { unitsText } from './unitText.js';

/** The result of each pass as text, by file name. */
export function dumpTexts({ graph, plan, source }: NativeProgram): Record<string, string> {
  return {
    'graph.txt': graphText(graph),
    'units.txt': unitsText(plan.units),
    'steps.txt': stepsText(plan),
    'memory.txt': memoryText(plan),
    'program.c': source,
  };
}
