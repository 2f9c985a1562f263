/** @file Classes that no fixture has yet: reviews of changes to them are not tried by mutants. */
export const WITHOUT_FIXTURE: ReadonlySet<string> = new Set(['PreferenceFeatures', 'RenderChat']);
