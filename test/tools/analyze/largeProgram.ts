/** @file Analyzes a GPT of 175 billion parameters with all that needs masks and tables; prints how much memory that took. */

import { analyze } from '../../../src/analysis/analyze.js';
import { registerLibrary } from '../../../src/rooms.js';
import { configured, Gpt } from '../../analysis/models.js';

registerLibrary();
const sizes = { layers: 96, dims: 12288, heads: 96, vocab: 50257, time: 2048, batch: 1536 };
const lm = 'task.model.lmTpl';
const attention = `${lm}.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl`;
const changes = {
  ...sizes,
  dropoutProb: 0.1,
  [`${attention}.attenLogitCap`]: 50,
  [`${attention}.useRotaryPositionEmb`]: 'true',
  [`${lm}.usePaddings`]: 'true',
  [`${lm}.positionEmbTpl`]: 'PositionalEmbedding',
};
const { parameters } = analyze(configured(Gpt, changes));
process.stdout.write(JSON.stringify({ parameters, maxRssKilobytes: process.resourceUsage().maxRSS }));
