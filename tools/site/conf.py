# conf.py - how Sphinx makes the site of the documents that tools/docs_site.py has laid out.
project, copyright, html_title = "Heft", "the authors of Heft, Apache License 2.0", "Heft"
extensions = ["myst_parser"]
myst_heading_anchors = 5
html_theme = "furo"
html_logo = html_favicon = "mark.svg"
html_show_sourcelink = html_show_sphinx = html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
