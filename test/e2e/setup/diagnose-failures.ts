// A failed test is diagnosed while everything is still as it was. The tests after it in its file often fail of the same:
// they are not diagnosed.

import { beforeEach } from 'vitest';
import { diagnose } from './diagnosis.ts';

let isDiagnosed = false;

beforeEach(({ onTestFailed, task }) => {
  onTestFailed(async () => {
    if (isDiagnosed) return;
    isDiagnosed = true;
    await diagnose(`${task.file.name} ${task.name}`);
  }, 120_000);
});
