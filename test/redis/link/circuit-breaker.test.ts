import { describe, expect, it } from 'vitest';
import { CircuitBreaker } from '../../../src/redis/link/circuit-breaker.ts';

function openCircuit() {
  let now = 0;
  const circuit = new CircuitBreaker({ clock: { now: () => now } });
  for (let i = 0; i < 3; i++) {
    expect(circuit.admits()).toBe(true);
    circuit.unanswered();
  }
  return {
    circuit,
    pass(milliseconds: number) {
      now += milliseconds;
    },
  };
}

describe('the circuit', () => {
  it('refuses after three unanswered requests in a row', () => {
    const { circuit } = openCircuit();
    expect(circuit.isOpen).toBe(true);
    expect(circuit.admits()).toBe(false);
  });

  it('stays closed while answers come in between', () => {
    const circuit = new CircuitBreaker({ clock: { now: () => 0 } });
    for (let i = 0; i < 10; i++) {
      circuit.unanswered();
      circuit.unanswered();
      circuit.answered();
    }
    expect(circuit.isOpen).toBe(false);
  });

  it('lets one probe through after 200 ms, and only one at a time', () => {
    const { circuit, pass } = openCircuit();
    pass(199);
    expect(circuit.admits()).toBe(false);
    pass(1);
    expect(circuit.admits()).toBe(true);
    expect(circuit.admits()).toBe(false);
  });

  it('closes with the first answer', () => {
    const { circuit, pass } = openCircuit();
    pass(200);
    circuit.admits();
    circuit.answered();
    expect([circuit.isOpen, circuit.admits(), circuit.admits()]).toEqual([false, true, true]);
  });

  it('waits 200 ms more after an unanswered probe', () => {
    const { circuit, pass } = openCircuit();
    pass(200);
    circuit.admits();
    pass(800);
    circuit.unanswered();
    expect(circuit.admits()).toBe(false);
    pass(200);
    expect(circuit.admits()).toBe(true);
  });

  it('gives the probe to another request when it was not sent', () => {
    const { circuit, pass } = openCircuit();
    pass(200);
    circuit.admits();
    circuit.notSent();
    expect([circuit.isOpen, circuit.admits()]).toEqual([true, true]);
  });
});
