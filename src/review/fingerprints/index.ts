/** @file Fingerprints of an experiment's computations and data. */
