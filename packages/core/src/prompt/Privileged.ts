/**
 * Escapes the tags in which the runtime speaks to the model, so that text of files, tools, servers and processes
 * cannot imitate them: the `<` of such a tag becomes `&lt;`. Pure. Spec: LM-30.
 */

const names = ["system-update", "running-task", "conversation-checkpoint", "recent-context", "branch-summary"]

/** Matches despite invisible characters within a name and a few characters before it. */
const hidden = String.raw`\p{Cf}{0,2}`
const spelled = names.map((name) => name.split("").join(hidden)).join("|")
let tag: RegExp | undefined

/** Compiled on first use, because it takes longer than the start of a reading verb may. */
const tagPattern = () => (tag ??= new RegExp(String.raw`<(?=[\s\p{Cf}]{0,4}/?[\s\p{Cf}]{0,4}(?:${spelled}))`, "giu"))

/** The text with the runtime's tags escaped. */
export const unprivileged = (text: string): string =>
  text.includes("<") ? text.replaceAll(tagPattern(), "&lt;") : text
