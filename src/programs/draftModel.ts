/** @file The model that drafts tokens for a decoder, with the variables of its run. */
import { createTrainState, locateCheckpoint, readCheckpoint } from '../checkpoints/index.js';
import { flatLayout, heldViews } from '../compiler/index.js';
import { type BaseDecoder, isDecodable, type StepperOptions } from '../decoding/index.js';
import { loadMapFile } from '../files/index.js';
import { build, ConfigError } from '../hparams/index.js';
import { listVariables } from '../layers/index.js';

/**
 * The model of a decoder's `draft` and its variables; undefined where it has none.
 *
 * @throws ConfigError where it can't decode; CheckpointError where its checkpoint is missing or has others.
 */
export async function draftModel(decoder: BaseDecoder): Promise<StepperOptions['draft']> {
  const { draft } = decoder;
  if (draft === undefined) return undefined;
  const model = build(draft.model);
  if (!isDecodable(model))
    throw new ConfigError(
      `${decoder.constructor.name}.draftTpl: ${model.constructor.name} can't decode: it lacks initialDecodeState and extendStep (Decodable).`,
    );
  const variables = listVariables(model);
  const layout = flatLayout(
    variables.map(({ path, shape, storage }) => ({
      ...{ name: path, shape, group: 'all' },
      ...(storage && { storage }),
    })),
  );
  const state = createTrainState(layout);
  const { mapped } = readCheckpoint(locateCheckpoint(draft.checkpoint), state, {
    paramsOnly: true,
    map: await loadMapFile(),
  });
  return { model, params: { layout, views: { ...heldViews(layout, state.params), ...mapped } } };
}
