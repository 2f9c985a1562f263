/** @file Studies: directories of trials, and what they tell. */
export { importanceOf } from './importance.js';
export { parallelCoordinates } from './parallelCoordinates.js';
export type { StudyTrial } from './records.js';
export { type ClaimedTrial, type Outcome, readStudy, readTrials, Study, type StudyOptions } from './study.js';
export { countsText, rankedTrials, studyText, trialRows } from './studyTable.js';
export { trialDirectory, trialName } from './trialName.js';
