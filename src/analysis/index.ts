/** @file Analysis: what an experiment is and computes, without running it. */

export { type Analysis, analyze, type VariableSummary } from './analyze.js';
export { type Device, devicesOf, hoursOn, peakOf, readDevice, trainingCost } from './device.js';
export { endText, type Failure, failureOf } from './failure.js';
export { checkInputSettings } from './inputSettings.js';
export { type LayerRow, layerRows } from './layerRows.js';
export { type LearningRates, learningRatesOf } from './learningRates.js';
export { type MeshPlan, type MeshPlans, paretoFront, planMeshes } from './mesh/planMeshes.js';
export { type PlannedDevice, plannedDevice } from './mesh/stepTime.js';
export { Shared } from './shared.js';
