// SVG paths of 24 by 24 icons that several areas share.

/** For a row's play button: while it has data-playing, the second icon is shown. */
export const PLAY = '<path class="icon-play" d="M8 5.4v13.2a.8.8 0 0 0 1.2.7l10.4-6.6a.8.8 0 0 0 0-1.4L9.2 4.7A.8.8 0 0 0 8 5.4Z"/><path class="icon-stop" d="M6.500 5.500h4v13h-4zM13.500 5.500h4v13h-4z"/>';
export const STAR = '<path d="m12 4.2 2.4 4.9 5.4.8-3.900 3.800.9 5.400L12 16.500l-4.800 2.600.9-5.400-3.900-3.800 5.400-.8L12 4.200Z"/>';
export const BIN = '<path d="M5 7h14M10 7V4.800h4V7m3 0-.8 12.200H7.800L7 7m3.300 3.600v5.200m3.400-5.200v5.200"/>';
export const MORE = '<path d="M6 10.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Zm6 0a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Zm6 0a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Z"/>';
