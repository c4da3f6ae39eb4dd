/** The content security policy of Daybook's pages. Spec: IP-3 in specs/inspector.md. */

/** Only what this origin serves is loaded, nothing is inline, and no string becomes HTML or a script. */
export const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'"
].join("; ")
