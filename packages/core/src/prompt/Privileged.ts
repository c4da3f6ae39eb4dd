/**
 * The frames in which the runtime itself speaks to the model. Text of files, tools, servers and processes must not look
 * like one: a `<` that begins such a frame, or its end, is written as `&lt;`. Pure. Spec: LM-30.
 */

const names = ["system-update", "running-task", "conversation-checkpoint", "recent-context"]

/** Invisible characters within a name, and a few characters before it, do not hide it. */
const hidden = String.raw`\p{Cf}{0,2}`
const spelled = names.map((name) => name.split("").join(hidden)).join("|")
const frame = new RegExp(String.raw`<(?=[\s\p{Cf}]{0,4}/?[\s\p{Cf}]{0,4}(?:${spelled}))`, "giu")

/** The text without frames of the runtime. */
export const unprivileged = (text: string): string => (text.includes("<") ? text.replaceAll(frame, "&lt;") : text)
