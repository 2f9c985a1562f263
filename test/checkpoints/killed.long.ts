/** @file A process killed 200 times while it saves, at moments drawn from the seed: the newest checkpoint can be loaded each time. */
import fc from 'fast-check';
import { test } from 'vitest';
import { draw, title, tries } from '../faults/campaign.js';
import { killWhileSaving } from './killing.js';

const delays = draw(fc.double({ min: 0, max: 60, noNaN: true }), tries(200, 10), 0x4b11);

test(title(`${delays.length} random moments`), () => killWhileSaving(delays), 1_200_000);
