/** @file Entry point of a process that renders config reviews: what strangers' files do to it ends no other one. */
import { type ReviewRequest, reviewsOf } from './renderReview.js';

process.on('message', (request: ReviewRequest) => process.send!(reviewsOf(request)));
process.on('disconnect', () => process.exit());
