/** @file Studies: directories of trials, and what they tell. */
export { importanceOf } from './importance.js';
export type { StudyTrial } from './records.js';
export { type ClaimedTrial, type Outcome, readStudy, readTrials, Study, type StudyOptions } from './study.js';
export { rankedTrials, shownValue, studyText, trialRows } from './studyTable.js';
export { trialName } from './trialName.js';
