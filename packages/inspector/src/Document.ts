/** The document of the inspector: its frame, which the script fills. Spec: IP-1, IP-2 in specs/inspector.md. */

/** The icon of the page: a book with a ribbon. */
export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#1d2433"/>
<path d="M9 8h12a2 2 0 0 1 2 2v14H11a2 2 0 0 1-2-2z" fill="none" stroke="#7fd1ae" stroke-width="2.5" stroke-linejoin="round"/>
<path d="M13 13h6M13 17h6" stroke="#7fd1ae" stroke-width="2.5" stroke-linecap="round"/>
</svg>
`

/** The document. */
export const document = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Daybook</title>
<link rel="icon" href="inspector/icon.svg">
<link rel="stylesheet" href="inspector/page.css">
<script type="module" src="inspector/page.js"></script>
</head>
<body>
<div id="app"></div>
<noscript><p>The inspector needs JavaScript.</p></noscript>
</body>
</html>
`
