/** What the model is reminded of, once and in its place: durable messages, so that a replay shows them again. Spec: RQ-24. */

/** After prompts that arrived while the model was at work. */
export const steered = (count: number): string =>
  count === 1
    ? "<reminder>\nThe message above arrived while you were working. Take it into account now, then go on with what is " +
      "still to be done.\n</reminder>"
    : `<reminder>\nThe ${count} messages above arrived while you were working. Take them into account now, then go on ` +
      "with what is still to be done.\n</reminder>"

/** Before the last turn that the activity may have. */
export const lastTurn =
  "<reminder>\nThis is the last answer before you are stopped: calls of tools will not be followed by another. Say what is " +
  "done, what is left, and how to go on.\n</reminder>"

/** Around an agent's own words at a switch. */
export const switched = (text: string): string => `<reminder>\n${text}\n</reminder>`
