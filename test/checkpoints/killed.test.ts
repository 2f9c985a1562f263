/** @file A process killed with SIGKILL while it saves leaves whole checkpoints, and nothing else after the next start. */
import { test } from 'vitest';
import { killWhileSaving } from './killing.js';

test('at whatever moment it is killed', () => killWhileSaving([0, 7, 20]));
