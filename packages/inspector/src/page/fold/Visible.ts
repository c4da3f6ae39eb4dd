/**
 * Makes characters visible that would hide or reorder text: terminal escapes, other controls, directional and zero-width
 * characters. Pure. Spec: IP-30 in specs/inspector.md.
 */

// Tab and line feed stay; a carriage return before a line feed is dropped. ZWJ and ZWNJ stay: words and emoji need them.
const invisible =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu

const pictured = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  if (code === 0x7f) return "\u2421"
  return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`
}

/** The text, with each invisible character as a visible one. */
export const visible = (text: string): string => text.replaceAll("\r\n", "\n").replace(invisible, pictured)
