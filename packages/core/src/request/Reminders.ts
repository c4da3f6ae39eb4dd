/**
 * The runtime's own messages to the model. The first four are durable messages (RQ-24). The others are derived from
 * the log alone when a request is assembled (EX-R13, EX-R12): changing their text would change how earlier requests
 * look.
 */

/** After prompts that arrived while the model was working. */
export const steered = (count: number): string =>
  count === 1
    ? "<reminder>\nThe message above arrived while you were working. Take it into account now, then go on with what is " +
      "still to be done.\n</reminder>"
    : `<reminder>\nThe ${count} messages above arrived while you were working. Take them into account now, then go on ` +
      "with what is still to be done.\n</reminder>"

/** Before the last turn that the activity may run. */
export const lastTurn =
  "<reminder>\nThis is the last answer before you are stopped: calls of tools will not be followed by another. Say what is " +
  "done, what is left, and how to go on.\n</reminder>"

/** After an answer without a text or call that can be used. */
export const answeredNothing =
  "<reminder>\nYour last answer had no text, or announced a tool call that it did not make. Answer now, or make the call." +
  "\n</reminder>"

/** Around an agent's own text at a switch. */
export const switched = (text: string): string => `<reminder>\n${text}\n</reminder>`

const byRuntime = (text: string) => `<reminder>\nThe runtime wrote this message, not the user. ${text}\n</reminder>`

/** After an answer that an interrupt, a fault or the output limit cut off. */
export const cutOff = byRuntime("Your answer above was cut off. Continue it where it ends, and do not repeat it.")

/** After a complete answer. */
export const goOn = byRuntime("Go on with the work that is left. If none is left, say so in one sentence.")

/** Before the first prompt. */
export const nothingAsked = byRuntime("The user has not asked for anything yet.")

export const repeated = (count: number): string =>
  `<reminder>\nThis call gave the same result ${count} times in a row. Made again in the same way, it will give it once ` +
  "more: change the call, try another way, or say what stands in the way.\n</reminder>"
