// Logos as operators have them.

/** One pixel. */
export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** As a drawing program writes it, with a script. */
export const SVG = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>
<!-- Made by hand -->
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" width="400" height="100" viewBox="0 0 400 100">
  <script>document.title = 'run'</script>
  <rect width="400" height="100" rx="20" style="fill: #0f5f5c"/>
</svg>
`);
