/** @file Busy neighbours: processes that keep a core each busy while a benchmark measures. */
import { spawn } from 'node:child_process';
import { endsWithUs } from './stopping.js';

/** Starts so many; they end with the benchmark. */
export function startNeighbours(count: number): void {
  for (let i = 0; i < count; i++)
    endsWithUs(spawn(process.execPath, ['-e', 'for(;;){}'], { stdio: 'ignore' }));
}
